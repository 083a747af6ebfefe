"""What is due: whether a supervisor's sweep has anything to do, and doorbells for what lies unserved.

The first is one statement, so that an idle system costs next to nothing.
"""

from . import conf, policies, queues, sql
from .states import LOCAL
from .transitions.gates import FIRST

NOW = "(SELECT clock_timestamp())"  # once a statement: an index cannot be searched for what changes

# Was posted and not taken for a while, or failed and is to be tried again. Only the first of each
# line is looked at, by submission_due: many may wait for their next try.
POSTED = f"""
((SELECT created_at FROM orchestration_submission WHERE refused_at IS NULL AND retry_at IS NULL
    ORDER BY retry_at NULLS FIRST, priority DESC, turn, id LIMIT 1)
    < {NOW} - interval '{conf.UNSERVED} seconds') IS TRUE
OR ((SELECT retry_at FROM orchestration_submission WHERE refused_at IS NULL
    AND retry_at IS NOT NULL ORDER BY retry_at NULLS FIRST, priority DESC, turn, id LIMIT 1) <= {NOW}) IS TRUE
"""  # noqa: S608 - put together from constants

# The same for what applications ask for about their tasks.
ASKED = f"""
((SELECT created_at FROM orchestration_taskrequest
    WHERE done_at IS NULL AND refused_at IS NULL AND retry_at IS NULL
    ORDER BY retry_at NULLS FIRST, id LIMIT 1) < {NOW} - interval '{conf.UNSERVED} seconds') IS TRUE
OR ((SELECT retry_at FROM orchestration_taskrequest
    WHERE done_at IS NULL AND refused_at IS NULL AND retry_at IS NOT NULL
    ORDER BY retry_at NULLS FIRST, id LIMIT 1) <= {NOW}) IS TRUE
"""  # noqa: S608 - put together from constants

# A step that needs no agent: for a scheduler to compute (step_turn).
TO_COMPUTE = FIRST.format(agent=f"'{LOCAL}'", alone="")

# Undos that no scheduler has begun.
REQUESTED = "EXISTS (SELECT FROM orchestration_undorequest)"

# Each part is what a duty of the sweep looks for; the first that finds a row ends the statement. Of
# what waits only the first is looked at, in the order of an index: an EXISTS may read all. Not
# asked for here are lost doorbells of what nothing waits for: chores ring for those.
ANYTHING = f"""
SELECT
    -- at work, failed or expired: step_expiry
    (SELECT true FROM orchestration_step WHERE process_state = 'processing'
        ORDER BY complete_by LIMIT 1) IS TRUE
    -- not mended in time: step_unmended
    OR ((SELECT min(mend_by) FROM orchestration_step WHERE mend_by IS NOT NULL) <= {NOW}) IS TRUE
    -- retries whose time has come: step_retry
    OR ((SELECT min(run_after) FROM orchestration_step
        WHERE process_state = 'pending' AND run_after IS NOT NULL) <= {NOW}) IS TRUE
    -- steps for a scheduler to claim, where their agent is not held: step_turn
    OR EXISTS (SELECT FROM orchestration_policy p
        WHERE NOT EXISTS (SELECT FROM orchestration_hold h
            WHERE h.scope = 'agent' AND h.agent = p.agent AND h.until IS NULL AND h.cause <> 'breaker')
        AND {FIRST.format(agent="p.agent", alone="")} IS NOT NULL)
    OR {TO_COMPUTE} IS NOT NULL
    OR EXISTS (SELECT FROM orchestration_jumpedtime)
    -- doorbells that may have been lost
    OR {POSTED} OR {ASKED}
    OR {REQUESTED}
"""  # noqa: S608 - put together from constants

# Beside what was posted: steps that a scheduler may claim, or compute (step_turn), and undos that one
# may begin.
LYING = f"""
SELECT {POSTED} OR {ASKED},
    EXISTS (SELECT FROM orchestration_policy p
        WHERE {FIRST.format(agent="p.agent", alone="")} IS NOT NULL) OR {TO_COMPUTE} IS NOT NULL
        OR {REQUESTED}
"""  # noqa: S608 - put together from constants


def anything() -> bool:
    """Return whether anything is due, or at work."""
    return bool(sql.run(ANYTHING, {})[0][0])


def ring() -> None:
    """Ring for what is due and not served: a lost doorbell costs seconds, not an order."""
    ((posted, ready),) = sql.run(LYING, {})
    for name, is_wanted in {queues.SUBMISSION: posted, queues.SCHEDULER: ready}.items():
        if is_wanted:
            queues.try_to_ring(name)
    try:
        left_lying = queues.waiting([queues.SCHEDULER, *policies.agents()])
    except queues.Unreachable:
        return
    for name in left_lying:
        queues.try_to_ring(name)
