"""What came of a batch of tasks: how many were handled, and what to wake after the commit."""

from dataclasses import dataclass, field

from .settle import Consequences


@dataclass(kw_only=True)
class Handled:
    """How many of the given tasks were handled, as others are locked, and what to wake."""

    handled: int = 0
    agents: set[str] = field(default_factory=set)
    applications: set[str] = field(default_factory=set)

    def add(self, other: "Handled | Consequences") -> None:
        """Have the agents and applications of another part be woken, too."""
        self.agents |= other.agents
        self.applications |= other.applications
