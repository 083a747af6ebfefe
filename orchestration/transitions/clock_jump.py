"""Move stored times after a jump of the database's clock.

Rows written since the jump have the new clock's times. They must not move, or they would wait for the
jump once more: a row moves only if its own times show that it was written before, or no further than a
deadline can lie ahead.

A clock that went back by seconds only is noted in `ClockJump`: it moves nothing.

Which times move, and to what, is noted first (`JumpedTime`), without a lock on their rows. Then they
are moved in batches, each if it still is what it was: one that was written since is right by the
clock as it is now. A row that is locked is passed over, and moved by a later sweep; until then `due`
leaves its step out.

Moved, in either direction:

- `step.complete_by` while an agent has it; `run_after` of a retry with its `pending_since`; `resolve_by`.
- `wait.ends_by` and `due_at` that are a duration, with its `awaited_at`, from which reminders count; of one
  until a step begins, its `pending_since`, too; `look_at`, `asked_at`.
- `gate.probe_at`, `paused_until`, `tokens_at`, and all others if it went back;
  `operation.starts_at`, `tokens_at`.
- `worker.seen_at`: else all would count as dead, or the dead as alive.

Moved only when the clock went back, so that nothing waits for as long once more:

- `send_after` of notifications and status messages, `application.push_after`; when the clock went
  forward they go out earlier, and what is sent twice has the same id.
- `retry_at` of submissions, requests and dead letters; when it went forward they are tried earlier.
- `created_at` of submissions, requests and status messages that no one has tried to deliver: a lost doorbell
  is rung again for what has waited.
- `step.keyed_at`, always the cautious way: a service forgets its keys by its own clock, so one may
  count as forgotten too early, never too late.
- `worker.started_at`, to be compared with dispatches to come.
- `schedule.look_at`: each schedule is planned anew from now on. A due time that the clock showed twice has
  one task, by its reference. When it went forward, due times are missed or caught up, as after an outage.

Not moved:

- `task.complete_by`: it is only a warning, and tasks may be a million. `mark_overdue` puts it off by
  what the clock went forward (`task.clock_jumps`); after a jump back it comes that much later.
- `step.dispatched_at`, and the times in attempts, events, alerts, incidents and holds: history, in
  the order in which it was written.
- `pending_since` of what may be claimed: alerts about what waits count from the jump on.
- `step.holds_counted_until`: a hold that went on through the jump may put `resolve_by` off by more, or less.
- What is set by the calendar: the `run_after` of a submission, a `fixed` end of a wait, a token's end,
  until when an incident is muted, or a refusal waited for.
- Roll-ups, audits and drafts: after a jump back, up to that time is missing in the figures, and the
  next audit comes later.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from django.db import transaction
from django.db.models import Exists, Model, OuterRef, QuerySet, TextField
from django.db.models.functions import Cast

from .. import conf
from ..cluster import leader_election
from ..database import sql
from ..decisions.readiness import INVALID_TIME
from ..models import ClockJump, JumpedTime

Row = TypeVar("Row", bound=Model)

# Who has the supervisors' lease deals with jumps; the sum, read under that lock, says with which.
LOCK = "SELECT 1 FROM orchestration_lease WHERE name = %(name)s FOR NO KEY UPDATE"
HANDLED = "SELECT coalesce(sum(seconds), 0), clock_timestamp() FROM orchestration_clockjump"

# What an earlier jump has yet to move, was written before this one too.
FURTHER = "UPDATE orchestration_jumpedtime SET becomes = becomes + %(jump)s"

NOTE = """
INSERT INTO orchestration_jumpedtime (kind, key, field, was, becomes)
SELECT %(kind)s, key, %(field)s, was, becomes FROM (
    SELECT t.{key}::text AS key, t.{field} AS was, {becomes} AS becomes
    FROM orchestration_{kind} t {beside} WHERE {where}) AS found
WHERE was <> becomes
ON CONFLICT DO NOTHING
"""
POLICY = "LEFT JOIN orchestration_policy p ON p.agent = t.agent"
# of a step: its own, else its agent's (`policies.of_steps`)
RESOLVE_WITHIN = """coalesce((SELECT o.resolve_within FROM orchestration_task k
    JOIN orchestration_steppolicy o ON o.workflow = k.workflow
    WHERE k.id = t.task_id AND o.step = t.name), p.resolve_within) * interval '1 second'"""

# Waits for no row, so that no one waits in a circle.
MOVE = """
WITH batch AS MATERIALIZED (
    SELECT id, key::{type} AS key, was, becomes FROM orchestration_jumpedtime
    WHERE kind = %(kind)s AND field = %(field)s AND id > %(after)s ORDER BY id LIMIT %(limit)s
), mine AS MATERIALIZED (
    SELECT b.id, b.key, b.was, b.becomes FROM batch b
    JOIN orchestration_{kind} t ON t.{key} = b.key AND t.{field} = b.was
    FOR NO KEY UPDATE OF t SKIP LOCKED
), moved AS (
    UPDATE orchestration_{kind} t SET {field} = mine.becomes FROM mine
    WHERE t.{key} = mine.key AND t.{field} = mine.was
), done AS (
    DELETE FROM orchestration_jumpedtime j USING batch b WHERE j.id = b.id
        AND (EXISTS (SELECT FROM mine WHERE mine.id = b.id) OR NOT EXISTS (
            SELECT FROM orchestration_{kind} t WHERE t.{key} = b.key AND t.{field} = b.was))
)
SELECT id FROM batch ORDER BY id
"""
LEFT = "SELECT DISTINCT kind, field FROM orchestration_jumpedtime ORDER BY kind, field"

# The primary keys, and their types, where they are not `id` and bigint.
KEYS = {
    "gate": ("agent", "text"),
    "worker": ("instance", "text"),
    "application": ("id", "uuid"),
}


@dataclass(frozen=True)
class Move:
    """A time that moves: the `field` of the rows of a `kind`, where; if not by the jump, to what."""

    kind: str
    field: str
    where: str
    becomes: str = ""

    def note(self) -> str:
        """Return the statement that notes all such times."""
        return NOTE.format(
            kind=self.kind, field=self.field, key=KEYS.get(self.kind, ("id",))[0],
            becomes=self.becomes or f"t.{self.field} + %(jump)s", where=self.where,
            beside=POLICY if self.kind == "step" else "",
        )  # fmt: skip


# `jump` is negative when the clock went back. It jumped within `since` before `now`.
EITHER_WAY = (
    Move("operation", "tokens_at", "t.ended_at IS NULL", "least(t.tokens_at, %(now)s)"),
    Move(
        "operation",
        "starts_at",
        "t.ended_at IS NULL",
        "least(t.starts_at + greatest(%(jump)s, interval '0'), %(now)s + %(take_back)s)",
    ),
)

# What waits for a duration. A step that was never sent, nor failed otherwise, waits for a date.
RETRIES = f"""t.process_state = 'pending' AND t.run_after IS NOT NULL
    AND NOT (t.attempt = 0 AND t.error_code IN ('', '{INVALID_TIME}'))"""
RETRIES_BEFORE = f"{RETRIES} AND t.pending_since <= %(now)s - %(jump)s"

TIMED = """t.process_state = 'waiting' AND t.id IN (
    SELECT w.step_id FROM orchestration_wait w WHERE w.due_at IS NOT NULL AND NOT w.fixed)"""
# A step that waits for its time has done so since all that it comes after had ended.
SINCE = """coalesce(t.awaited_at, (SELECT s.pending_since FROM orchestration_step s
    WHERE s.id = t.step_id AND s.process_state = 'waiting'))"""
WAITED_BEFORE = f"NOT t.fixed AND {SINCE} <= %(now)s - %(jump)s"

FORWARD = (
    Move(
        "step",
        "complete_by",
        "t.process_state = 'processing' AND t.locked_by IS NOT NULL",
        "least(t.complete_by + %(jump)s, %(now)s + p.time_allowed * interval '1 second')",
    ),
    Move("step", "run_after", RETRIES_BEFORE),
    Move("step", "pending_since", RETRIES_BEFORE),
    Move("step", "pending_since", f"{TIMED} AND t.pending_since <= %(now)s - %(jump)s"),
    # also what was refused since: mending it has rather more time
    Move("step", "resolve_by", "t.resolve_by IS NOT NULL"),
    Move("wait", "ends_by", WAITED_BEFORE),
    Move("wait", "due_at", WAITED_BEFORE),
    Move("wait", "awaited_at", WAITED_BEFORE),
    Move("wait", "look_at", "t.look_at <= %(now)s - %(since)s"),
    Move("gate", "probe_at", "t.probe_at <= %(now)s - %(since)s"),
    Move("gate", "paused_until", "t.paused_until <= %(now)s - %(since)s"),
    Move("gate", "tokens_at", "true", "least(t.tokens_at + %(jump)s, %(now)s)"),
    Move("worker", "seen_at", "true", "least(t.seen_at + %(jump)s, %(now)s)"),
)

WAITED_AHEAD = f"NOT t.fixed AND ({SINCE} > %(now)s OR {SINCE} < %(now)s - %(since)s)"
GATE_TIMES = ("since", "answered_at", "opened_at", "probe_at", "paused_until", "tokens_at")
RETRIES_BACK = f"{RETRIES} AND (t.pending_since > %(now)s OR t.run_after > %(now)s - %(jump)s)"

BACK = (
    Move(
        "step",
        "complete_by",
        """t.process_state = 'processing' AND t.complete_by > %(now)s
        AND (t.locked_by IS NULL OR t.complete_by > %(now)s
            + least(-%(jump)s, p.time_allowed * interval '1 second'))""",
        "CASE WHEN t.locked_by IS NULL THEN %(now)s ELSE t.complete_by + %(jump)s END",
    ),
    Move("step", "run_after", RETRIES_BACK),
    Move("step", "pending_since", RETRIES_BACK),
    Move("step", "pending_since", f"{TIMED} AND t.pending_since > %(now)s"),
    Move(
        "step",
        "resolve_by",
        f"""t.resolve_by IS NOT NULL
        AND t.resolve_by > %(now)s + least(-%(jump)s, {RESOLVE_WITHIN})""",
    ),
    Move(
        "step",
        "keyed_at",
        """t.process_state IN ('pending', 'processing', 'error') AND t.keyed_at IS NOT NULL
        AND p.key_memory IS NOT NULL""",
    ),
    *(Move("wait", field, WAITED_AHEAD) for field in ("ends_by", "due_at")),
    Move("wait", "awaited_at", "t.awaited_at > %(now)s"),
    Move("wait", "look_at", "t.look_at > %(now)s - %(jump)s OR t.awaited_at > %(now)s"),
    Move("wait", "asked_at", "t.asked_at > %(now)s"),
    *(Move("gate", field, "true") for field in GATE_TIMES),
    Move("worker", "started_at", "t.started_at > %(now)s AND t.seen_at > %(now)s"),
    Move("worker", "seen_at", "t.seen_at > %(now)s"),
    Move("notification", "send_after",
         "t.sent_at IS NULL AND t.given_up_at IS NULL AND t.send_after > %(now)s"),
    Move("application", "push_after", "t.push_after > %(now)s"),
    Move("statusmessage", "send_after", "t.refused_at IS NULL AND t.send_after > %(now)s"),
    Move("statusmessage", "created_at",
         "t.refused_at IS NULL AND t.tries = 0 AND t.created_at > %(now)s"),
    Move("submission", "created_at", "t.refused_at IS NULL AND t.created_at > %(now)s"),
    Move("submission", "retry_at", "t.refused_at IS NULL AND t.retry_at > %(now)s"),
    Move("taskrequest", "created_at",
         "t.done_at IS NULL AND t.refused_at IS NULL AND t.created_at > %(now)s"),
    Move("taskrequest", "retry_at",
         "t.done_at IS NULL AND t.refused_at IS NULL AND t.retry_at > %(now)s"),
    Move("deadletter", "retry_at", "t.retry_at > %(now)s"),
    Move("schedule", "look_at", "t.look_at > %(now)s", "%(now)s"),
)  # fmt: skip


def allow_for_jump(jump: float, *, handled: float, since: float, by: str) -> bool:
    """Move all times by a jump of the database's clock, reporting whether that was still to be done.

    One below `conf.CLOCK_JUMP_S` is only noted, for the audit: to move what was written since would cost
    more than it delays. `jump` is in seconds, negative when the clock went back, at most `since` seconds
    ago. `handled` is the sum of jumps that was known when it was noticed: another supervisor may have
    been first.
    """
    move_times()
    if not _note(jump, handled=handled, since=since, by=by):
        return False
    move_times()
    return True


@transaction.atomic
def _note(jump: float, *, handled: float, since: float, by: str) -> bool:
    sql.run(LOCK, {"name": leader_election.SUPERVISOR})
    ((known, now),) = sql.run(HANDLED, {})
    if known != handled:
        return False
    if abs(jump) > conf.CLOCK_JUMP_S:
        _note_times(jump, since, now)
    ClockJump.objects.create(seconds=jump, by=by)
    return True


def _note_times(jump: float, since: float, now: datetime) -> None:
    """Note which times move, and to what."""
    values = {
        "now": now,
        "jump": timedelta(seconds=jump),
        "since": timedelta(seconds=since),
        "take_back": timedelta(seconds=conf.OPERATION_GRACE_S),
    }
    sql.run(FURTHER, values)
    for move in (*(FORWARD if jump > 0 else BACK), *EITHER_WAY):
        sql.run(move.note(), {**values, "kind": move.kind, "field": move.field})


def move_times() -> None:
    """Move what a jump has yet to move, but for what others have locked; each batch by itself."""
    for kind, field in sql.run(LEFT, {}):
        key, of_type = KEYS.get(kind, ("id", "bigint"))
        statement = MOVE.format(kind=kind, field=field, key=key, type=of_type)
        values = {"kind": kind, "field": field, "after": 0, "limit": conf.BATCH_SIZE}
        while batch := sql.run(statement, values):
            values["after"] = batch[-1][0]


def due(rows: QuerySet[Row], field: str) -> QuerySet[Row]:
    """Return those of `rows` (of steps, or of waits) whose time in `field` no jump has yet to move."""
    kind = rows.model.__name__.lower()
    key = Cast(OuterRef("pk"), TextField())
    return rows.filter(~Exists(JumpedTime.objects.filter(kind=kind, field=field, key=key)))
