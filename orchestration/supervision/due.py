"""Find out whether a supervisor's sweep has work, and ring doorbells for unserved work.

The first is one statement, so that an idle system costs almost nothing.
"""

from typing import Any

from .. import conf, policies
from ..database import sql
from ..messaging import queues
from ..models import low_water
from ..models.hold import holds_agent
from ..models.low_water import AGENTS_FROM, WANTED, first_in_flight
from ..models.request import NEEDS_NO_PERSON
from ..states import LOCAL
from ..transitions.gates import FIRST

NOW = (
    "(SELECT clock_timestamp())"  # evaluated once: a volatile value cannot be searched in an index
)

# A submission that was posted and not taken for a while, or whose retry is due. Reads only the first row
# of each line, by the index submission_due: many may wait for their next try.
POSTED = f"""
((SELECT created_at FROM orchestration_submission WHERE refused_at IS NULL AND retry_at IS NULL
    ORDER BY retry_at NULLS FIRST, priority DESC, turn, id LIMIT 1)
    < {NOW} - interval '{conf.RERING_AFTER_S} seconds') IS TRUE
OR ((SELECT retry_at FROM orchestration_submission WHERE refused_at IS NULL
    AND retry_at IS NOT NULL ORDER BY retry_at NULLS FIRST, priority DESC, turn, id LIMIT 1) <= {NOW}) IS TRUE
"""  # noqa: S608 - put together from constants

# The same for applications' requests about their tasks. Those that wait for a person are passed over.
ASKED = f"""
((SELECT created_at FROM orchestration_taskrequest r
    WHERE done_at IS NULL AND refused_at IS NULL AND retry_at IS NULL AND {NEEDS_NO_PERSON}
    ORDER BY retry_at NULLS FIRST, id LIMIT 1) < {NOW} - interval '{conf.RERING_AFTER_S} seconds') IS TRUE
OR ((SELECT retry_at FROM orchestration_taskrequest r
    WHERE done_at IS NULL AND refused_at IS NULL AND retry_at IS NOT NULL AND {NEEDS_NO_PERSON}
    ORDER BY retry_at NULLS FIRST, id LIMIT 1) <= {NOW}) IS TRUE
"""  # noqa: S608 - put together from constants

# A step without an agent, for a scheduler to compute (index step_turn).
TO_COMPUTE = FIRST.format(agent=f"'{LOCAL}'")

# Requested undos that no scheduler has begun.
REQUESTED = "EXISTS (SELECT FROM orchestration_undorequest)"

# Each part is the condition of one duty; the first that finds a row ends the statement. Each reads only
# the first row in the order of an index, as an EXISTS may read all rows. Lost doorbells for which no
# row waits are not covered: chores ring for those.
ANYTHING = f"""
SELECT
    -- failed or expired: step_expiry
    (SELECT true FROM orchestration_step WHERE process_state = 'processing'
        AND complete_by >= %(from_complete_by)s AND complete_by <= {NOW}
        ORDER BY complete_by LIMIT 1) IS TRUE
    -- at work: step_in_flight
    OR EXISTS (SELECT FROM {AGENTS_FROM} WHERE {first_in_flight("s.id")} IS NOT NULL)
    -- not mended in time: step_unmended
    OR ((SELECT min(resolve_by) FROM orchestration_step WHERE resolve_by IS NOT NULL) <= {NOW}) IS TRUE
    -- retries whose time has come: step_retry
    OR ((SELECT min(run_after) FROM orchestration_step
        WHERE process_state = 'pending' AND run_after IS NOT NULL) <= {NOW}) IS TRUE
    -- steps for a scheduler to claim, where their agent is not held: step_turn
    OR EXISTS (SELECT FROM {AGENTS_FROM}
        WHERE NOT {holds_agent("m.agent")} AND {WANTED})
    OR {TO_COMPUTE} IS NOT NULL
    OR EXISTS (SELECT FROM orchestration_jumpedtime)
    -- doorbells that may have been lost
    OR {POSTED} OR {ASKED}
    OR {REQUESTED}
"""  # noqa: S608 - put together from constants

# What the submission process serves; and what schedulers serve: steps to claim or compute (step_turn),
# and undos to begin.
UNSERVED = f"""
SELECT {POSTED} OR {ASKED},
    EXISTS (SELECT FROM {AGENTS_FROM} WHERE {WANTED}) OR {TO_COMPUTE} IS NOT NULL
        OR {REQUESTED}
"""  # noqa: S608 - put together from constants


def given() -> dict[str, Any]:
    """Return the parameters of both: from where on to look."""
    return low_water.all_agents() | {"from_complete_by": low_water.deadline()}


def anything() -> bool:
    """Return whether anything is due or being processed."""
    parameters = given()
    with low_water.AGENTS.watching(), low_water.PROCESSING.watching():
        return bool(sql.run(ANYTHING, parameters)[0][0])


def ring() -> None:
    """Ring for work that is due and not served: a lost doorbell costs seconds, not a task."""
    ((posted, ready),) = sql.run(UNSERVED, given())
    for name, is_wanted in {queues.SUBMISSION: posted, queues.SCHEDULER: ready}.items():
        if is_wanted:
            queues.try_to_ring(name)
    try:
        waiting = queues.waiting([queues.SCHEDULER, *policies.agents()])
    except queues.Unreachable:
        return
    for name in waiting:
        queues.try_to_ring(name)
