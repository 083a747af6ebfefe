"""Update the roll-ups of tasks, attempts and gates, for the charts; the housekeeper calls it.

One transaction locks the mark, adds what ended since it to the roll-ups, and moves the mark. So a leader
that dies has counted nothing, and a second leader finds the mark moved.

A row may be committed after a younger one. So the mark notes a time and the current transaction. Rows up
to that time are counted once all transactions that were open then have ended: by then every row with an
earlier time is visible. A transaction that stays open for longer than `PATIENCE` is not waited for.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from ... import conf
from ...cluster import crash_points
from ...cluster.duty import Duty
from ...cluster.leader_election import Leadership
from ...database import prepared, sql
from ...models import RollUpMark
from ...models.hold import HOLDS_ALL, holds_agent
from ...models.low_water import AGENTS, AGENTS_FROM, all_agents, first_in_flight, longest_waiting
from ...models.rollup import Span
from .histogram import BOUNDS, SIZE, dense

# the spans of roll-ups, and how long each is kept: somewhat longer than a chart shows it
SPANS = {
    Span.MINUTE.value: timedelta(hours=2),
    Span.QUARTER.value: timedelta(hours=26),
    Span.TWO_HOURS.value: timedelta(days=8),
}

COUNT_INTERVAL = timedelta(
    seconds=4
)  # below `conf.DUTY_INTERVAL_S`, or every other round would come too early
SETTLE = timedelta(seconds=1)  # a time may be taken a moment before its transaction has a number
PATIENCE = timedelta(seconds=120)  # longer than any statement or pause that the settings allow
LONGEST_COUNT = timedelta(
    minutes=10
)  # the most that one count reads, after a time without a leader

LOCK = """
SELECT until, noted_until, noted_xid, epoch, clock_timestamp(), pg_current_xact_id()::text::bigint,
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint
FROM orchestration_rollupmark WHERE id = 1 FOR UPDATE SKIP LOCKED
"""

FIRST = """
SELECT greatest(created_at, clock_timestamp() - interval '8 days') FROM orchestration_task
ORDER BY created_at LIMIT 1
"""

# Each SELECT uses an index on its time: task_by_creation, task_by_end, event_recent. A task that
# was processed, and whose undo began within the seconds before this, counts as undone only.
TASKS = """
SELECT floor(extract(epoch FROM at) / 60)::bigint * 60, workflow, what,
    width_bucket(took, %(bounds)s::float8[]), count(*)
FROM (
    SELECT created_at AS at, workflow, 'created' AS what, NULL::float8 AS took
    FROM orchestration_task WHERE created_at >= %(start)s AND created_at < %(end)s
    UNION ALL
    SELECT ended_at, workflow, state, CASE state WHEN 'processed'
        THEN extract(epoch FROM ended_at - created_at)::float8 END
    FROM orchestration_task WHERE ended_at >= %(start)s AND ended_at < %(end)s
    UNION ALL
    SELECT e.at, t.workflow, 'errors', NULL
    FROM orchestration_event e JOIN orchestration_task t ON t.id = e.task_id
    WHERE e.at >= %(start)s AND e.at < %(end)s AND e.kind = 'error'
) AS happened
GROUP BY 1, 2, 3, 4
"""

# Uses attempt_by_end; the step and the task by their keys.
ATTEMPTS = """
SELECT floor(extract(epoch FROM a.ended_at) / 60)::bigint * 60, t.workflow, s.name, s.direction,
    s.agent,
    CASE WHEN a.outcome IN ('done', 'absent', 'later') THEN 'done' WHEN a.outcome = 'rejected' THEN 'rejected'
        ELSE 'failed' END,
    CASE a.outcome WHEN 'done' THEN width_bucket(
        extract(epoch FROM a.ended_at - a.dispatched_at)::float8, %(bounds)s::float8[]) END,
    count(*)
FROM orchestration_attempt a
JOIN orchestration_step s ON s.id = a.step_id
JOIN orchestration_task t ON t.id = s.task_id
WHERE a.ended_at >= %(start)s AND a.ended_at < %(end)s
GROUP BY 1, 2, 3, 4, 5, 6, 7
"""

SUM_TOOK = """took = ARRAY(SELECT coalesce(old, 0) + coalesce(new, 0)
    FROM unnest(stored.took, excluded.took) WITH ORDINALITY AS u (old, new, place) ORDER BY place)"""

ADD_TASKS = f"""
INSERT INTO orchestration_taskrollup AS stored
    (span, start, workflow, created, processed, errors, undone, took)
SELECT span, start, workflow, created, processed, errors, undone, took::int[]
FROM unnest(%(span)s::int[], %(start)s::timestamptz[], %(workflow)s::text[], %(created)s::int[],
    %(processed)s::int[], %(errors)s::int[], %(undone)s::int[], %(took)s::text[])
    AS r (span, start, workflow, created, processed, errors, undone, took)
ON CONFLICT (span, start, workflow) DO UPDATE SET
    created = stored.created + excluded.created, processed = stored.processed + excluded.processed,
    errors = stored.errors + excluded.errors, undone = stored.undone + excluded.undone, {SUM_TOOK}
"""  # noqa: S608 - put together from constants

ADD_ATTEMPTS = f"""
INSERT INTO orchestration_steprollup AS stored
    (span, start, workflow, step, direction, agent, done, failed, rejected, took)
SELECT span, start, workflow, step, direction, agent, done, failed, rejected, took::int[]
FROM unnest(%(span)s::int[], %(start)s::timestamptz[], %(workflow)s::text[], %(step)s::text[],
    %(direction)s::text[], %(agent)s::text[], %(done)s::int[], %(failed)s::int[],
    %(rejected)s::int[], %(took)s::text[])
    AS r (span, start, workflow, step, direction, agent, done, failed, rejected, took)
ON CONFLICT (span, start, workflow, step, direction, agent) DO UPDATE SET
    done = stored.done + excluded.done, failed = stored.failed + excluded.failed,
    rejected = stored.rejected + excluded.rejected, {SUM_TOOK}
"""  # noqa: S608 - put together from constants

# One observation of each gate: steps in flight by step_in_flight, waiting ones (up to the cap) and the
# oldest by step_waiting.
OBSERVE_GATES = f"""
INSERT INTO orchestration_gaterollup AS stored
    (span, start, agent, samples, blocked_samples, in_flight, room, waiting, oldest)
SELECT span, date_bin(span * interval '1 second', clock_timestamp(), 'epoch'), p.agent, 1,
    (free.room = 0)::int, flight.steps, free.room, waiting.steps,
    coalesce(greatest(0, extract(epoch FROM clock_timestamp() - oldest.since)), 0)
FROM orchestration_policy p
JOIN orchestration_gate g USING (agent)
JOIN {AGENTS_FROM} USING (agent)
CROSS JOIN LATERAL (SELECT CASE
    WHEN {HOLDS_ALL} OR {holds_agent("p.agent")} THEN 0
    WHEN g.paused_until > (SELECT clock_timestamp()) OR g.state = 'open' THEN 0
    WHEN g.state = 'half_open' THEN 1
    WHEN g.state = 'recovering' THEN least(g.allowance, p.window)
    ELSE p.window END AS room) AS free
CROSS JOIN LATERAL (SELECT count(*) AS steps FROM {first_in_flight("s.id", "ALL")} AS s) AS flight
CROSS JOIN LATERAL (SELECT count(*) AS steps
    FROM {longest_waiting("s.id", "%(cap)s")} AS counted) AS waiting
LEFT JOIN LATERAL {longest_waiting("s.pending_since AS since")} AS oldest ON true
CROSS JOIN unnest(%(spans)s::int[]) AS span
ON CONFLICT (span, start, agent) DO UPDATE SET
    samples = stored.samples + 1,
    blocked_samples = stored.blocked_samples + excluded.blocked_samples,
    in_flight = greatest(stored.in_flight, excluded.in_flight),
    room = least(stored.room, excluded.room),
    waiting = greatest(stored.waiting, excluded.waiting),
    oldest = greatest(stored.oldest, excluded.oldest)
"""  # noqa: S608 - put together from constants
WAITING_CAP = 10_001
# by task_rollup_once, step_rollup_once and gate_rollup_once
OLD = "USING ends e WHERE r.span = e.span AND r.start < e.at"
PRUNE = f"""
WITH ends AS (SELECT * FROM unnest(%(spans)s::int[], %(ends)s::timestamptz[]) AS e (span, at)),
    tasks AS (DELETE FROM orchestration_taskrollup r {OLD}),
    steps AS (DELETE FROM orchestration_steprollup r {OLD}),
    gates AS (DELETE FROM orchestration_gaterollup r {OLD})
SELECT 1
"""  # noqa: S608 - put together from constants


@dataclass(kw_only=True)
class RollUpCounts:
    """What is added to one row of roll-ups."""

    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    took: dict[int, int] = field(default_factory=lambda: defaultdict(int))


def update(leadership: Leadership) -> bool:
    """Count what has settled, if the interval is over; return whether anything was counted."""
    with transaction.atomic():
        rows = sql.run(LOCK, {})
        if not rows:  # another supervisor is at it
            return False
        until, noted, noted_by, epoch, now, xid, oldest = rows[0]
        if epoch > leadership.epoch or (noted and now - noted < COUNT_INTERVAL):
            return False
        mark = RollUpMark(
            id=1, until=until, noted_until=noted, noted_xid=noted_by, epoch=leadership.epoch
        )
        counted = _advance(mark, now, oldest)
        if mark.noted_until is None and not _behind(mark, now):
            mark.noted_until, mark.noted_xid = now - SETTLE, xid
        mark.save(force_update=True)
        observe_gates(SPANS)
        prune(now)
        crash_points.reached("housekeeper.rolled_up", counted)
    return counted


def observe_gates(spans: Iterable[int]) -> None:
    """Add one observation of each gate to the roll-ups of some spans."""
    values = all_agents() | {"spans": list(spans), "cap": WAITING_CAP}
    with AGENTS.watching():
        prepared.run(OBSERVE_GATES, values)


def _behind(mark: RollUpMark, now: datetime) -> bool:
    """Return whether there was no leader for a while: what is to be counted is long settled."""
    return mark.until is not None and mark.until + LONGEST_COUNT < now - PATIENCE


def _advance(mark: RollUpMark, now: datetime, oldest: int) -> bool:
    """Count up to where all rows have settled; `oldest` is the oldest open transaction."""
    if mark.until is None:
        first = sql.run(FIRST, {})
        mark.until = first[0][0] if first else now - SETTLE
        return False
    if _behind(mark, now):
        to = mark.until + LONGEST_COUNT
    elif mark.noted_until is None or mark.noted_xid is None:
        return False
    elif oldest > mark.noted_xid or now - mark.noted_until > PATIENCE:
        to = mark.noted_until
    else:
        return False
    count(mark.until, to)
    mark.until, mark.noted_until, mark.noted_xid = to, None, None
    return True


def count(start: datetime, end: datetime) -> None:
    """Add what happened from `start` to before `end` to the roll-ups."""
    window = {"start": start, "end": end, "bounds": list(BOUNDS)}
    _add(ADD_TASKS, ("workflow",), ("created", "processed", "errors", "undone"), _spread(
        (minute, (workflow,), what, bucket, number)
        for minute, workflow, what, bucket, number in sql.run(TASKS, window)
    ))  # fmt: skip
    _add(
        ADD_ATTEMPTS,
        ("workflow", "step", "direction", "agent"),
        ("done", "failed", "rejected"),
        _spread(
            (minute, tuple(names), what, bucket, number)
            for minute, *names, what, bucket, number in sql.run(ATTEMPTS, window)
        ),
    )


Key = tuple[int, int, tuple[str, ...]]  # span, start in Unix time, names


def _spread(
    rows: Iterable[tuple[int, tuple[str, ...], str, int | None, int]],
) -> dict[Key, RollUpCounts]:
    """Add what was counted by the minute to the row of each span that the minute lies in."""
    sums: dict[Key, RollUpCounts] = defaultdict(RollUpCounts)
    for minute, names, what, bucket, number in rows:
        for span in SPANS:
            row = sums[span, minute - minute % span, names]
            row.counts[what] += number
            if bucket is not None:
                row.took[bucket] += number
    return sums


def _add(
    statement: str, names: Sequence[str], counts: Sequence[str], rows: dict[Key, RollUpCounts]
) -> None:
    if not rows:
        return
    # in order: a reader of these rows finds neighbours together
    keys = sorted(rows)
    columns: dict[str, list[Any]] = {
        "span": [span for span, _, _ in keys],
        "start": [datetime.fromtimestamp(start, UTC) for _, start, _ in keys],
        "took": [_array(rows[key].took) for key in keys],
    }
    for place, name in enumerate(names):
        columns[name] = [key[2][place] for key in keys]
    for name in counts:
        columns[name] = [rows[key].counts[name] for key in keys]
    sql.run(statement, columns)


def _array(took: dict[int, int]) -> str:
    """Return counts as the text of a Postgres array, without trailing zeros, to save space."""
    return "{" + ",".join(map(str, _trimmed(took))) + "}"


def _trimmed(took: dict[int, int]) -> Iterator[int]:
    last = max(took, default=-1)
    return iter(dense(took.items())[: min(last + 1, SIZE)])


def prune(now: datetime) -> None:
    """Delete the rows that no chart shows any more."""
    sql.run(PRUNE, {"spans": list(SPANS), "ends": [now - longest for longest in SPANS.values()]})


ROLL_UP = Duty(
    name="roll up statistics",
    run=lambda sweep: update(sweep.leadership),
    every=conf.DUTY_INTERVAL_S,
)
