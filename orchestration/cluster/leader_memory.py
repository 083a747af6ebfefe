"""The state of a leader between two sweeps."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast

from ..database import clock

if TYPE_CHECKING:
    from .duty import Duty


class Observations(Protocol):
    """What a duty remembers from sweep to sweep, such as a `Debounce`."""

    def dump(self) -> Mapping[str, Any]:
        """Return the state that another process needs to continue, as JSON."""

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> Self:
        """Return the state that another process dumped; a new state if that is empty."""


Kind = TypeVar("Kind", bound=Observations)


class Memory:
    """A leader's memory: what its duties observed, when each runs next, and which fail.

    `dumped` is what the previous sweep left, if a schedule starts a process for each.
    """

    def __init__(self, dumped: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.next_at: dict[str, float] = {}  # by duty, on the steady clock
        self.failing: dict[str, Exception] = {}  # duties, until they succeed again
        self._dumped = dumped
        self._observations: dict[str, Observations] = {}

    def of(self, name: str, kind: type[Kind]) -> Kind:
        """Return the observations with a name, which are of a kind."""
        if name not in self._observations:
            self._observations[name] = kind.load(self._dumped.get(name, {}))
        return cast("Kind", self._observations[name])

    def elapsed(self, duties: Iterable["Duty"]) -> set[str]:
        """Return the names of the duties whose interval is over, and start their next."""
        now = clock.steady()
        elapsed = {
            duty.name: now + duty.every
            for duty in duties
            if duty.every is not None and now >= self.next_at.get(duty.name, 0.0)
        }
        self.next_at |= elapsed
        return set(elapsed)

    def dump(self) -> dict[str, Any]:
        """Return the state for the next scheduled sweep, as JSON."""
        observations = {name: observed.dump() for name, observed in self._observations.items()}
        return {**self._dumped, **observations}
