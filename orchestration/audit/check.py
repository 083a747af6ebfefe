"""The invariants, and the classes `Check` and `Violation`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from .. import conf
from ..database import sql

INVARIANTS = {
    1: "no loss",
    2: "no phantom or twin",
    3: "charged once",
    4: "quantities conserved",
    5: "no step done twice",
    6: "right order",
    7: "each undo matches a do",
    8: "fenced",
    9: "counted right",
    10: "stable keys",
    11: "status messages match",
    12: "nothing left behind",
    13: "operations match their items",
    14: "every failure has its cause",
}
# violations that one check names: beyond that, there is one cause to look for
MAX_VIOLATIONS = 1_000


def clock_repeated(column: str) -> str:
    """Return the condition that the database's clock showed the time in `column` twice.

    The order of events at such a time is unknown.
    """
    return f"""EXISTS (SELECT FROM orchestration_clockjump j WHERE j.seconds < 0
        AND {column} BETWEEN j.at - interval '1 minute'
        AND j.at + interval '1 minute' - j.seconds * interval '1 second')"""


def ended_after(ended: str, sent: str, ids: str) -> str:
    """Return the condition that something had not ended, at the time in `ended`, when another was sent.

    `ids` is the condition that the ids of their attempts say so: they rise in the order in which attempts
    end. Times alone say so only if they differ by more than a step back of the clock that is not noted.
    """
    return f"""({ended} > {sent} AND NOT {clock_repeated(ended)}
        AND ({ended} > {sent} + interval '{conf.CLOCK_BACK_S} seconds' OR {ids}))"""


# The condition that attempt `f` ended before step `p` was done, so that it was sent before that.
ENDED_LATER = """f.id < (SELECT max(d.id) FROM audit_attempt d
    WHERE d.step_id = p.id AND d.outcome = 'done')"""

# The condition that a time is one that this audit looks at.
LATELY = "(%(since)s::timestamptz IS NULL OR {} >= %(since)s::timestamptz)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """A task, or another object that `reference` names, that breaks an invariant; and the remedy."""

    invariant: int
    reference: str
    problem: str
    remedy: str


class Scope(Enum):
    """What a check looks at, and so how often an audit runs it."""

    TASKS = "the tasks of a slice: once for each, over the temporary tables"
    RANGE = "all rows of a range of ids: once for each slice of a whole audit"
    ALL = "rows of no task, or of all: once; where there are many, only what changed `since`"


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What an application's audit is called for: the tasks of a slice, or all rows, once.

    `ledgers` are the agents whose ledgers were read. `since` is the time from which on an audit of what
    has changed looks; None for a whole one.
    """

    scope: Scope
    ledgers: frozenset[str] = frozenset()
    since: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Check:
    """One statement that returns (reference, problem) for each violation of an invariant."""

    invariant: int
    remedy: str
    query: str
    scope: Scope = Scope.TASKS
    ledgers: bool = False  # whether it compares with the services' ledgers

    def violations(self, parameters: Mapping[str, Any]) -> list[Violation]:
        """Run the statement."""
        limited = f"SELECT * FROM ({self.query}) AS found LIMIT {MAX_VIOLATIONS}"  # noqa: S608 - a constant
        return [
            Violation(
                invariant=self.invariant, reference=reference, problem=problem, remedy=self.remedy
            )
            for reference, problem in sql.run(limited, parameters)
        ]
