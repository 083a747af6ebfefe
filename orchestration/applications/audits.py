"""What an application's audit is called with, and what it returns."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from ..database import sql

# violations that one check names: beyond that, there is one cause to look for
MAX_VIOLATIONS = 1_000
# The condition that a time is one that this audit looks at.
LATELY = "(%(since)s::timestamptz IS NULL OR {} >= %(since)s::timestamptz)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """A task, or another object that `reference` names, that breaks an invariant; and the remedy.

    >>> Violation(invariant=12, reference="42", problem="it has no name", remedy="enter it").reference
    '42'
    """

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

    >>> def audit(part: Part) -> list[Violation]:
    ...     return [] if part.scope is Scope.TASKS else nameless.violations({})
    >>> audit(Part(scope=Scope.TASKS))
    []
    """

    scope: Scope
    ledgers: frozenset[str] = frozenset()
    since: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Check:
    """One statement that returns (reference, problem) for each violation of an invariant.

    >>> nameless = Check(
    ...     invariant=12, remedy="enter the name", scope=Scope.ALL,
    ...     query="SELECT reference, 'it has no name' FROM audit_data WHERE data ->> 'name' = ''",
    ... )
    """

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
