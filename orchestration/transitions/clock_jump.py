"""The database's clock jumped: what it would end too early, or too late, moves by the jump.

Between the jump and this, rows were written by the clock as it is now. Those must not move, or something
would wait for the jump once more: a row moves only if its own times say that it was written before,
or no further than a deadline can lie ahead.

Moved, in either direction:

- `step.complete_by` while an agent has it; `run_after` with its `pending_since`; `mend_by`.
- `gate.probe_at`, `paused_until`, `heard_at`, `tokens_at`; `operation.starts_at`, `paced_at`.
- `worker.seen_at`: else all would count as dead, or the dead as alive.

Moved only when the clock went back, so that nothing waits for as long once more:

- `send_after` of notices and status messages, `application.push_after`; when the clock went
  forward they go out earlier, and what is sent twice has the same id.
- `created_at` of submissions and status messages that no one has tried to deliver: a lost doorbell
  is rung again for what has waited.
- `step.keyed_at`, always the cautious way: a service forgets its keys by its own clock, so one may
  count as forgotten too early, never too late.
- `worker.started_at`, to be compared with dispatches to come.

Not moved:

- `task.complete_by`: it is only a warning, and tasks may be a million. `mark_overdue` puts it off by
  what the clock went forward (`task.clock_jumps`); after a jump back it comes that much later.
- `step.dispatched_at`, and the times in attempts, events, alerts, incidents and holds: history, in
  the order in which it was written.
- `pending_since` of what may be claimed: alerts about what waits count from the jump on.
- What people set by the calendar: a token's end, until when an incident is muted.
- Roll-ups, audits and drafts: after a jump back, up to that time is missing in the figures, and the
  next audit comes later.
"""

from datetime import timedelta

from django.db import transaction

from .. import conf, leader, sql
from ..models import ClockJump

# Whoever has the lease's row deals with jumps; the sum, read under that lock, says with which.
LOCK = "SELECT 1 FROM orchestration_lease WHERE name = %(name)s FOR NO KEY UPDATE"
HANDLED = "SELECT coalesce(sum(seconds), 0), clock_timestamp() FROM orchestration_clockjump"

# Before their steps, as every other writer does, so that no one waits in a circle.
TASKS = """
SELECT count(*) FROM (SELECT id FROM orchestration_task WHERE id IN (
    SELECT task_id FROM orchestration_step WHERE process_state = 'processing'
    UNION SELECT task_id FROM orchestration_step
        WHERE process_state = 'pending' AND run_after IS NOT NULL
    UNION SELECT task_id FROM orchestration_step WHERE mend_by IS NOT NULL
    UNION SELECT task_id FROM orchestration_step WHERE %(jump)s < interval '0'
        AND process_state IN ('pending', 'processing', 'error') AND keyed_at IS NOT NULL
        AND agent IN (SELECT agent FROM orchestration_policy WHERE key_memory IS NOT NULL)
) ORDER BY id FOR NO KEY UPDATE) AS locked
"""

# `jump` is negative when the clock went back. It jumped within `since` before `now`.
EITHER_WAY = (
    """UPDATE orchestration_operation SET paced_at = least(paced_at, %(now)s),
        starts_at = least(starts_at + greatest(%(jump)s, interval '0'),
            %(now)s + %(take_back)s)
    WHERE ended_at IS NULL""",
)

FORWARD = (
    """UPDATE orchestration_step s
    SET complete_by = least(s.complete_by + %(jump)s, %(now)s + p.time_allowed * interval '1 second')
    FROM orchestration_policy p
    WHERE p.agent = s.agent AND s.process_state = 'processing' AND s.locked_by IS NOT NULL""",
    """UPDATE orchestration_step
    SET run_after = run_after + %(jump)s, pending_since = pending_since + %(jump)s
    WHERE process_state = 'pending' AND run_after IS NOT NULL
        AND pending_since <= %(now)s - %(jump)s""",
    # also what was refused since: mending it has rather more time
    "UPDATE orchestration_step SET mend_by = mend_by + %(jump)s WHERE mend_by IS NOT NULL",
    """UPDATE orchestration_gate SET
        probe_at = CASE WHEN probe_at <= %(now)s - %(since)s THEN probe_at + %(jump)s ELSE probe_at END,
        paused_until = CASE WHEN paused_until <= %(now)s - %(since)s THEN paused_until + %(jump)s
            ELSE paused_until END,
        heard_at = least(heard_at + %(jump)s, %(now)s), tokens_at = least(tokens_at + %(jump)s, %(now)s)
    WHERE num_nonnulls(probe_at, paused_until, heard_at, tokens_at) > 0""",
    "UPDATE orchestration_worker SET seen_at = least(seen_at + %(jump)s, %(now)s)",
)

BACK = (
    """UPDATE orchestration_step s SET complete_by = CASE WHEN s.locked_by IS NULL THEN %(now)s
        ELSE s.complete_by + %(jump)s END
    FROM orchestration_policy p
    WHERE p.agent = s.agent AND s.process_state = 'processing' AND s.complete_by > %(now)s
        AND (s.locked_by IS NULL OR s.complete_by > %(now)s
            + least(-%(jump)s, p.time_allowed * interval '1 second'))""",
    """UPDATE orchestration_step
    SET run_after = run_after + %(jump)s, pending_since = pending_since + %(jump)s
    WHERE process_state = 'pending' AND run_after IS NOT NULL
        AND (pending_since > %(now)s OR run_after > %(now)s - %(jump)s)""",
    """UPDATE orchestration_step s SET mend_by = s.mend_by + %(jump)s
    FROM orchestration_policy p
    WHERE p.agent = s.agent AND s.mend_by > %(now)s
        + least(-%(jump)s, p.mend_within * interval '1 second')""",
    """UPDATE orchestration_step SET keyed_at = keyed_at + %(jump)s
    WHERE process_state IN ('pending', 'processing', 'error') AND keyed_at IS NOT NULL
        AND agent IN (SELECT agent FROM orchestration_policy WHERE key_memory IS NOT NULL)""",
    """UPDATE orchestration_gate SET probe_at = probe_at + %(jump)s,
        paused_until = paused_until + %(jump)s, heard_at = heard_at + %(jump)s,
        tokens_at = tokens_at + %(jump)s
    WHERE num_nonnulls(probe_at, paused_until, heard_at, tokens_at) > 0""",
    """UPDATE orchestration_worker SET seen_at = seen_at + %(jump)s,
        started_at = CASE WHEN started_at > %(now)s THEN started_at + %(jump)s ELSE started_at END
    WHERE seen_at > %(now)s""",
    """UPDATE orchestration_notice SET send_after = send_after + %(jump)s
    WHERE sent_at IS NULL AND given_up_at IS NULL AND send_after > %(now)s""",
    """UPDATE orchestration_application SET push_after = push_after + %(jump)s
    WHERE push_after > %(now)s""",
    """UPDATE orchestration_statusmessage SET send_after = send_after + %(jump)s
    WHERE refused_at IS NULL AND send_after > %(now)s""",
    """UPDATE orchestration_statusmessage SET created_at = created_at + %(jump)s
    WHERE refused_at IS NULL AND tries = 0 AND created_at > %(now)s""",
    """UPDATE orchestration_submission SET created_at = created_at + %(jump)s
    WHERE refused_at IS NULL AND created_at > %(now)s""",
)


@transaction.atomic
def allow_for_jump(jump: float, *, handled: float, since: float, by: str) -> bool:
    """Move all times by a jump of the database's clock, reporting whether that was still to be done.

    `jump` is in seconds, negative when the clock went back, at most `since` seconds ago. `handled` is
    the sum of jumps that was known when it was noticed: another supervisor may have been first.
    """
    sql.run(LOCK, {"name": leader.NAME})
    ((known, now),) = sql.run(HANDLED, {})
    if known != handled:
        return False
    given = {
        "now": now,
        "jump": timedelta(seconds=jump),
        "since": timedelta(seconds=since),
        "take_back": timedelta(seconds=conf.TAKE_BACK),
    }
    sql.run(TASKS, given)
    for statement in (*(FORWARD if jump > 0 else BACK), *EITHER_WAY):
        sql.run(statement, given)
    ClockJump.objects.create(seconds=jump, by=by)
    return True
