"""What the audit finds, and the checks that find it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import sql

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
    11: "told the truth",
    12: "nothing left behind",
    13: "bulk acts told the truth",
    14: "every failure has its cause",
}
MOST = 1_000  # violations that one check names: beyond that, there is one cause to look for


def shown_twice(column: str) -> str:
    """Return the condition that the database's clock went back, and showed a time twice.

    What came first cannot be told from it.
    """
    return f"""EXISTS (SELECT FROM orchestration_clockjump j WHERE j.seconds < 0
        AND {column} BETWEEN j.at - interval '1 minute'
        AND j.at + interval '1 minute' - j.seconds * interval '1 second')"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """One task, or whatever else `reference` names, that breaks an invariant, and how to mend it."""

    invariant: int
    reference: str
    trouble: str
    mend: str


@dataclass(frozen=True, kw_only=True)
class Check:
    """One statement that returns (reference, trouble) of whatever breaks an invariant."""

    invariant: int
    mend: str
    query: str
    ledgers: bool = False  # whether it compares with the services' ledgers

    def violations(self, parameters: Mapping[str, Any]) -> list[Violation]:
        """Run the statement."""
        limited = f"SELECT * FROM ({self.query}) AS found LIMIT {MOST}"  # noqa: S608 - ours alone
        return [
            Violation(
                invariant=self.invariant, reference=reference, trouble=trouble, mend=self.mend
            )
            for reference, trouble in sql.run(limited, parameters)
        ]
