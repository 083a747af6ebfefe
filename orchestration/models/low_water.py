"""Low-water marks: from where on steps wait, and are in flight.

A look along an index begins at its head, and passes the entries of rows that are gone from it. Postgres
removes such entries, but not while an older transaction is open, which might still see the rows: then
each look passes all that was done since. Once one took long for that, looks begin at a mark instead: at
what was the lowest value some time ago.

A row can get a lower value, if the transaction that writes it has read the line before, and commits
later. So a mark is used only when it is `LAG_S` old; and what took even longer is found by the next look
that begins at the head again. Such looks take `SHARE` of the time, so they are rare only where they are
costly. Each process keeps marks for itself.
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
LOOK_S = 0.25  # between two marks
LAG_S = 0.5
KEPT = int(LAG_S / LOOK_S) + 1  # marks that are younger than that, and one
SHARE = 0.01
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

# All agents with their marks, as a table of a statement; `Marks.given` has the parameters.
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


def first_in_flight(what: str) -> str:
    """Return the SQL of the first dispatched of the steps in flight, of `m.agent`: by step_in_flight."""
    return f"""(SELECT {what} FROM orchestration_step s
        WHERE s.agent = m.agent AND s.process_state = 'processing' AND s.locked_by IS NOT NULL
            AND s.dispatched_at >= m.dispatched_at
        ORDER BY s.dispatched_at LIMIT 1)"""  # noqa: S608 - constants of our own


def _head(below: str = "") -> str:
    """Return the SQL of the first in line, of all priorities or those below one: by step_turn."""
    return f"""(SELECT s.priority, s.turn FROM orchestration_step s
        WHERE s.agent = m.agent AND NOT s.isolated AND {claimable("s")} AND s.turn >= m.turn {below}
        ORDER BY s.agent, s.isolated, s.priority DESC, s.turn, s.id LIMIT 1)"""  # noqa: S608


def _lowest(key: str, values: str, source: str, indexes: Sequence[str]) -> str:
    """Return the statement that reads the lowest of each key: key, values, time, number of entries passed."""
    passed = "+".join(f"pg_stat_get_xact_tuples_returned('{index}'::regclass)" for index in indexes)
    return f"""
SELECT {key}, {values}, now, {passed} - passed
FROM {source} CROSS JOIN LATERAL
    (SELECT clock_timestamp() AS now, {passed} AS passed WHERE {key} = ANY(%(marked)s::text[])) AS before
"""  # noqa: S608 - put together from constants


# What is written from now on has the present time, or a turn behind it, unless others wait before it.
# The line of those that go alone is short, and has no mark.
LOWEST = _lowest(
    "m.agent",
    f"""least((
        WITH RECURSIVE heads AS (
            {_head()} UNION ALL
            SELECT n.* FROM heads h CROSS JOIN LATERAL {_head("AND s.priority < h.priority")} AS n)
        SELECT min(turn) FROM heads), (extract(epoch FROM now) * 1000000000)::bigint),
    least({longest_waiting("s.pending_since")}, now),
    least({first_in_flight("s.dispatched_at")}, now)""",  # noqa: S608
    AGENTS_FROM,
    ["step_turn", "step_waiting", "step_in_flight"],
)

LOWEST_DEADLINE = _lowest(
    "m.key",
    """least((SELECT s.complete_by FROM orchestration_step s
        WHERE s.process_state = 'processing' AND s.complete_by >= m.complete_by AND s.complete_by <= now
        ORDER BY s.complete_by LIMIT 1), now)""",
    "unnest(%(marked)s::text[], %(from_complete_by)s::timestamptz[]) AS m (key, complete_by)",
    ["step_expiry"],
)


@dataclass(kw_only=True, slots=True)
class _Known(Generic[AnyMark]):
    """The marks of one key, each with the time of its look; times are of the monotonic clock."""

    marks: tuple[tuple[float, AnyMark], ...] = ()
    look_at: float = 0.0
    from_head_at: float = 0.0
    costly: bool = False
    read_at: datetime = LONG_AGO  # by the database's clock

    def used(self, now: float) -> AnyMark | None:
        """Return the youngest mark that is old enough, if looks are costly without."""
        old_enough = [mark for seen_at, mark in self.marks if seen_at <= now - LAG_S]
        return old_enough[-1] if self.costly and old_enough else None

    def add(self, mark: AnyMark, read_at: datetime, now: float) -> None:
        """Keep a mark, and those that are used before it is old enough."""
        if read_at < self.read_at:  # the clock was put back: what is written now may be lower
            self.marks = ()
            self.from_head_at = 0.0
        self.read_at = read_at
        self.marks = (*self.marks[-KEPT:], (now, mark))
        self.look_at = now + LOOK_S


class Marks(Generic[AnyMark]):
    """The marks that this process has, by key; `lowest` is the statement that reads the lowest there is."""

    def __init__(self, lowest: str, kind: type[AnyMark]) -> None:
        self.lowest = lowest
        self.kind = kind
        self.head = kind()
        self._known: dict[str, _Known[AnyMark]] = {}
        self.wanted = False
        self._rest_until = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keep marks from now on if what is done meanwhile takes long."""
        began = time.monotonic()
        yield
        now = time.monotonic()
        self.wanted |= now - began > conf.SLOW_LOOK_S and now >= self._rest_until

    def of(self, keys: Iterable[str]) -> dict[str, AnyMark]:
        """Return the mark of each key that has one that is of use."""
        if not self.wanted:
            return {}
        now = time.monotonic()
        known = {key: self._known.setdefault(key, _Known()) for key in keys}
        due = {key for key, one in known.items() if now >= one.look_at}
        at_head = {key for key in due if now >= known[key].from_head_at}
        for some in (at_head, due - at_head):
            if some:
                self._look(some, now, from_head=some is at_head)
        used = {key: one.used(now) for key, one in known.items()}
        return {key: mark for key, mark in used.items() if mark}

    def given(self, marks: Mapping[str, AnyMark]) -> dict[str, list[Any]]:
        """Return marks as parameters of a statement."""
        columns = zip(*marks.values(), strict=True) if marks else ([] for _ in self.head)
        named = zip(self.head._fields, columns, strict=True)
        return {"marked": [*marks], **{f"from_{name}": [*column] for name, column in named}}

    def _look(self, keys: Collection[str], now: float, *, from_head: bool) -> None:
        since = {
            key: (None if from_head else self._known[key].used(now)) or self.head for key in keys
        }
        began = time.monotonic()
        rows = prepared.run(self.lowest, self.given(since))
        took = time.monotonic() - began
        for key, *lowest, read_at, passed in rows:
            one = self._known[key]
            if from_head:
                one.costly = passed > COSTLY
                one.from_head_at = now + took / SHARE
            one.add(self.kind(*lowest), read_at, now)
        if not any(one.costly for one in list(self._known.values())):
            self.wanted = False
            self._rest_until = now + took / SHARE


AGENTS = Marks(LOWEST, Mark)
PROCESSING = Marks(LOWEST_DEADLINE, Deadline)


def all_agents() -> dict[str, list[Any]]:
    """Return the marks of all agents, as parameters of a statement with `AGENTS_FROM`."""
    agents = Policy.objects.values_list("agent", flat=True)
    return AGENTS.given(AGENTS.of(agents) if AGENTS.wanted else {})


def deadline() -> datetime:
    """Return from where on to look for steps whose complete-by has passed."""
    return PROCESSING.of([""]).get("", PROCESSING.head).complete_by
