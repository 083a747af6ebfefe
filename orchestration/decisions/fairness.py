"""Fair between the keys that share a line: a virtual sequence number, given once (start-time fair queueing).

A line is served in the order of its *turns*. Each key's next turn stands one stride behind its last
one, so keys with much and keys with little take turns; a key with twice the weight has strides half
as long. A key that was idle begins at the head of the line: what it did not use is not saved up.

Source: Goyal, Vin, Cheng, Start-time Fair Queueing (SIGCOMM 1996); Waldspurger, Weihl, Stride
Scheduling (1995).
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

STRIDE = 100_000  # at weight 1; turns are nanoseconds, so that an empty line begins at the clock
# Of a key's tasks that have begun, this many go for each other one, so that most of them end first; not
# all of them, as long tasks would keep other keys waiting.
BEGUN = 4
PRIORITIES = range(-(2**15), 2**15)
LONGEST_KEY = 100  # characters


class Line(NamedTuple):
    """Whose turns follow each other: one key's, in what `agent` does at a priority."""

    agent: str
    priority: int
    key: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """Where a line stands: the first turn of all keys, and the key's own last one, of what waits.

    `now` is the database's clock in nanoseconds: where an empty line begins, so that what returns to
    it late is still before what came after.
    """

    head: int | None
    last: int | None
    weight: float
    now: int


def positions(rows: Iterable[Sequence[Any]]) -> dict[Line, Position]:
    """Return where lines stand, from rows: agent, priority, key, head, last, weight, now."""
    return {
        Line(agent, priority, key): Position(head=head, last=last, weight=weight, now=now)
        for agent, priority, key, head, last, weight, now in rows
    }


class Arrival(NamedTuple):
    """Something that joins a line: at the key's end or, if it comes again, right behind the head.

    `begun`: it is a later step of a task that has been there.
    """

    line: Line
    again: bool = False
    begun: bool = False


def give_turns(arrivals: Sequence[Arrival], positions: Mapping[Line, Position]) -> list[int]:
    """Return a turn for each arrival, in order; every one is behind the head of its line."""
    reached: dict[Arrival, int] = {}
    turns = []
    for arrival in arrivals:
        position = positions[arrival.line]
        before = reached.get(arrival)
        if before is None:
            before = position.now if position.head is None else position.head
            if not arrival.again and position.last is not None:
                before = max(before, position.last)
        stride = STRIDE / position.weight / (BEGUN if arrival.begun else 1)
        reached[arrival] = before + max(1, round(stride))
        turns.append(reached[arrival])
    return turns


def for_aged(places: int, share: float) -> int:
    """Return how many places go to steps that waited long, at any priority.

    On average it is their share: of one place in ten calls, one. Nothing is kept from call to call.
    """
    return int(places * share + random.random())  # noqa: S311 - no secret


def check_key(key: str) -> str:
    """Return a fairness key; raise `ValueError` if it cannot be one."""
    if len(key) > LONGEST_KEY or not key.isprintable():
        raise ValueError(
            f"the fairness key {key!r} has more than {LONGEST_KEY} characters, or some that cannot "
            "be printed"
        )
    return key
