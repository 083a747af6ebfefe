"""The invariants, and the classes `Check` and `Violation`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """A task, or another object that `reference` names, that breaks an invariant; and the remedy."""

    invariant: int
    reference: str
    problem: str
    remedy: str


@dataclass(frozen=True, kw_only=True)
class Check:
    """One statement that returns (reference, problem) for each violation of an invariant."""

    invariant: int
    remedy: str
    query: str
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
