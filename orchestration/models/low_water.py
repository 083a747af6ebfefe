"""Low-water marks: from where on steps wait, and are in flight.

A look along an index begins at its head, and passes the entries of rows that are gone from it. Postgres
removes such entries, but not while an older transaction is open, which might still see the rows: then
each look passes all that was done since. Once one took long for that, looks begin at a mark instead: at
what was the lowest value some time ago.

A row can get a lower value, if the transaction that writes it has read the line before, and commits
later. So a mark follows what each look finds with a delay of `LAG_S`, and nothing that was committed
within that is passed. What took longer is found by the next look that begins at the head again: such
looks take `SHARE` of the time, and come after `LONGEST_S` at the latest. Each process keeps marks for
itself.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, TypeVar

from .. import conf
from ..database import prepared
from .policy import Policy
from .step import claimable

COSTLY = 1_000  # entries that a look from the head passes
# Those that are known to be dead are not counted, though their pages are read until a vacuum: a page
# counts as this number of entries.
PAGE = 20
LOOK_S = 0.25  # between two looks
LAG_S = 0.5
SHARE = 0.01
LONGEST_S = 30.0
LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Mark(NamedTuple):
    """The lowest of an agent's steps: the turn, and since when one waits and one is in flight."""

    turn: int = -(2**63 - 1)
    pending_since: datetime = LONG_AGO
    dispatched_at: datetime = LONG_AGO


class Deadline(NamedTuple):
    """The lowest complete-by of the steps that are processing, of those that it has passed."""

    complete_by: datetime = LONG_AGO


AnyMark = TypeVar("AnyMark", bound=Mark | Deadline)

# All agents with their marks, as a table of a statement; `Marks.parameters` has the parameters.
AGENTS_FROM = f"""(
    SELECT p.agent, coalesce(f.turn, '{Mark().turn}'::bigint) AS turn,
        coalesce(f.pending_since, '-infinity') AS pending_since,
        coalesce(f.dispatched_at, '-infinity') AS dispatched_at
    FROM orchestration_policy p LEFT JOIN unnest(%(marked)s::text[], %(from_turn)s::bigint[],
        %(from_pending_since)s::timestamptz[], %(from_dispatched_at)s::timestamptz[])
        AS f (agent, turn, pending_since, dispatched_at) USING (agent)) AS m"""  # noqa: S608


def longest_waiting(what: str, limit: str = "1") -> str:
    """Return the SQL of the steps that may go and have waited the longest, of `m.agent`: by step_waiting."""
    return f"""(SELECT {what} FROM orchestration_step s
        WHERE s.agent = m.agent AND s.process_state = 'pending'
            AND num_nonnulls(s.run_after, s.held_by_id) = 0 AND s.pending_since >= m.pending_since
        ORDER BY s.pending_since LIMIT {limit})"""  # noqa: S608 - constants of our own


def first_in_flight(what: str, limit: str = "1", *, more: str = "") -> str:
    """Return the SQL of the first dispatched of the steps in flight, of `m.agent`: by step_in_flight.

    All of them (limit ALL) have this order too, in which no other index is worth using: where all steps have
    one agent, step_expiry seems as good, and it has no mark.
    """
    return f"""(SELECT {what} FROM orchestration_step s
        WHERE s.agent = m.agent AND s.process_state = 'processing' AND s.locked_by IS NOT NULL
            AND s.dispatched_at >= m.dispatched_at {more}
        ORDER BY s.dispatched_at LIMIT {limit})"""  # noqa: S608 - constants of our own


# A step is in flight: by step_in_flight
IN_FLIGHT = f"EXISTS (SELECT FROM {AGENTS_FROM} WHERE {first_in_flight('s.id')} IS NOT NULL)"


def first_in_line(what: str, isolated: str = "false", *, more: str = "") -> str:
    """Return the SQL of the first step in line of `m.agent`: by step_turn.

    The line of those that go alone (`isolated`) is short, and has no mark.
    """
    mark = "AND s.turn >= m.turn" if isolated == "false" else ""
    return f"""(SELECT {what} FROM orchestration_step s
        WHERE s.agent = m.agent AND s.isolated = {isolated} AND {claimable("s")} {mark} {more}
        ORDER BY s.agent, s.isolated, s.priority DESC, s.turn, s.id LIMIT 1)"""  # noqa: S608 - the same


# Whether any step of `m.agent` waits that may go.
MAY_GO = f"""({first_in_line("s.id")} IS NOT NULL OR {first_in_line("s.id", "true")} IS NOT NULL)"""


def _lowest(key: str, values: str, source: str, indexes: Sequence[str]) -> str:
    """Return the statement that reads the lowest of each key: key, values, time, number of entries passed."""
    passed = "+".join(
        f"pg_stat_get_xact_tuples_returned({index}) + {PAGE} * pg_stat_get_xact_blocks_fetched({index})"
        for index in (f"'{name}'::regclass" for name in indexes)
    )
    return f"""
SELECT {key}, {values}, statement_timestamp(), {passed} - passed
FROM {source} CROSS JOIN LATERAL
    (SELECT {passed} AS passed WHERE {key} = ANY(%(marked)s::text[])) AS before
"""  # noqa: S608 - put together from constants


# What is written from now on has the present time, or a turn behind it, unless others wait before it. The
# present is that of what the statement sees: the time at which it began.
PRESENT = "statement_timestamp()"
LOWEST = _lowest(
    "m.agent",
    f"""least((
        WITH RECURSIVE heads AS (
            {first_in_line("s.priority, s.turn")} UNION ALL
            SELECT n.* FROM heads h CROSS JOIN LATERAL
                {first_in_line("s.priority, s.turn", more="AND s.priority < h.priority")} AS n)
        SELECT min(turn) FROM heads), (extract(epoch FROM {PRESENT}) * 1000000000)::bigint),
    least({longest_waiting("s.pending_since")}, {PRESENT}),
    least({first_in_flight("s.dispatched_at")}, {PRESENT})""",  # noqa: S608
    AGENTS_FROM,
    ["step_turn", "step_waiting", "step_in_flight"],
)

LOWEST_DEADLINE = _lowest(
    "m.key",
    f"""least((SELECT s.complete_by FROM orchestration_step s
        WHERE s.process_state = 'processing' AND s.complete_by >= m.complete_by
            AND s.complete_by <= {PRESENT}
        ORDER BY s.complete_by LIMIT 1), {PRESENT})""",  # noqa: S608
    "unnest(%(marked)s::text[], %(from_complete_by)s::timestamptz[]) AS m (key, complete_by)",
    ["step_expiry"],
)


@dataclass(kw_only=True, slots=True)
class _Known(Generic[AnyMark]):
    """One key: its mark, if there is one, and what the last looks found.

    Times are of the monotonic clock, but for `read_at`, which is the database's.
    """

    mark: AnyMark | None = None
    readings: tuple[tuple[float, AnyMark], ...] = ()
    look_at: float = 0.0
    from_head_at: float = 0.0
    costly: bool = False
    read_at: datetime = LONG_AGO

    @property
    def used(self) -> AnyMark | None:
        """Return its mark, if looks are costly without."""
        return self.mark if self.costly else None

    def add(self, lowest: AnyMark, read_at: datetime, now: float) -> None:
        """Note what a look found; what was found `LAG_S` ago is the mark, unless there is less by now."""
        if read_at < self.read_at:  # the clock was put back: what is written now may be lower
            self.mark, self.readings, self.from_head_at = None, (), 0.0
        else:
            old = [reading for reading in self.readings if reading[0] <= now - LAG_S][-1:]
            for _, mark in old:
                pairs: Iterable[tuple[Any, Any]] = zip(mark, lowest, strict=True)
                self.mark = type(lowest)(*(min(pair) for pair in pairs))
            recent = (reading for reading in self.readings if reading[0] > now - LAG_S)
            self.readings = (*old, *recent, (now, lowest))
        self.read_at = read_at


class Marks(Generic[AnyMark]):
    """The marks that this process has, by key; `lowest` is the statement that reads the lowest there is."""

    def __init__(self, lowest: str, kind: type[AnyMark]) -> None:
        self.lowest = lowest
        self.kind = kind
        self.head = kind()
        self._known: dict[str, _Known[AnyMark]] = {}
        self.in_use = False
        self._rest_until = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keep marks from now on if what is done meanwhile takes long."""
        began = time.monotonic()
        try:
            yield
        finally:
            now = time.monotonic()
            self.in_use |= now - began > conf.SLOW_LOOK_S and now >= self._rest_until

    def of(self, keys: Iterable[str]) -> dict[str, AnyMark]:
        """Return the mark of each key that has one that is of use."""
        if not self.in_use:
            return {}
        now = time.monotonic()
        known = {key: self._known.setdefault(key, _Known()) for key in keys}
        due = {key for key, entry in known.items() if now >= entry.look_at}
        at_head = {key for key in due if now >= known[key].from_head_at}
        for batch in (at_head, due - at_head):
            if batch:
                self._look(batch, now, from_head=batch is at_head)
        return {key: entry.used for key, entry in known.items() if entry.used}

    def parameters(self, marks: Mapping[str, AnyMark]) -> dict[str, list[Any]]:
        """Return marks as parameters of a statement."""
        columns = zip(*marks.values(), strict=True) if marks else ([] for _ in self.head)
        named = zip(self.head._fields, columns, strict=True)
        return {"marked": [*marks], **{f"from_{name}": [*column] for name, column in named}}

    def _look(self, keys: Collection[str], began: float, *, from_head: bool) -> None:
        known = {key: self._known[key] for key in keys}
        for entry in known.values():  # even if this fails
            entry.look_at = began + LOOK_S
            entry.from_head_at = began + LONGEST_S if from_head else entry.from_head_at
        since = {
            key: (None if from_head else entry.mark) or self.head for key, entry in known.items()
        }
        rows = prepared.run(self.lowest, self.parameters(since))
        now = time.monotonic()
        rest = min((now - began) / SHARE, LONGEST_S)
        for key, *lowest, read_at, passed in rows:
            entry = known[key]
            if from_head:
                entry.costly = passed > COSTLY
                entry.from_head_at = now + rest
            entry.add(self.kind(*lowest), read_at, now)
        if not any(entry.costly for entry in list(self._known.values())):
            self.in_use = False
            self._rest_until = now + rest


AGENTS = Marks(LOWEST, Mark)
PROCESSING = Marks(LOWEST_DEADLINE, Deadline)


def all_agents() -> dict[str, list[Any]]:
    """Return the marks of all agents, as parameters of a statement with `AGENTS_FROM`."""
    agents = Policy.objects.values_list("agent", flat=True)
    return AGENTS.parameters(AGENTS.of(agents) if AGENTS.in_use else {})


def deadline() -> datetime:
    """Return from where on to look for steps whose complete-by has passed."""
    return PROCESSING.of([""]).get("", PROCESSING.head).complete_by
