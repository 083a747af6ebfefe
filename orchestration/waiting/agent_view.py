"""An agent as pages see it: its gate, its thresholds, and why its steps wait."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..decisions.recovery import Thresholds
from ..decisions.step_policy import with_own
from ..decisions.wait_reasons import AgentFacts, Reason, Why
from ..models import Hold
from ..models.hold import Scope
from ..states import GateState

BADGES = {
    GateState.CLOSED: ("success", "breaker closed"),
    GateState.OPEN: ("warning", "breaker open"),
    GateState.HALF_OPEN: ("warning", "breaker half-open"),
    GateState.RECOVERING: ("info", "recovering"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentView:
    """An agent's gate and the thresholds of its policy; `blocked` says why its steps wait, if so.

    `own` are the values that steps have for themselves, by workflow and step. `hold` is the one in force
    on it, or on everything.
    """

    facts: AgentFacts
    blocked: Why | None
    thresholds: Thresholds
    own: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    hold: Hold | None = None

    @property
    def free(self) -> bool:
        """Return whether its steps may go as long as the window has room."""
        return self.blocked is None

    def of_step(self, workflow: str, step: str) -> Thresholds:
        """Return the thresholds in force for a step that calls it."""
        return with_own(self.thresholds, self.own.get((workflow, step), {}))

    def facts_with(self, in_flight: int) -> AgentFacts:
        """Return what decides about its steps, with `in_flight` calls under way."""
        return replace(self.facts, in_flight=in_flight)

    @property
    def held_with_all(self) -> bool:
        """Return whether a hold on everything holds it."""
        return self.hold is not None and self.hold.scope == Scope.ALL

    @property
    def badge(self) -> tuple[str, str]:
        """Return the colour and word of its circuit breaker."""
        if self.facts.hold:
            return "warning", "held"
        if self.blocked and self.blocked.reason == Reason.PAUSED:
            return "warning", "paused"
        return BADGES[GateState(self.facts.state)]
