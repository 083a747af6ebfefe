"""What an agent can do: its actions, each with the shape of what it takes and of what it returns."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, overload

Result = dict[str, Any]
Schema = Mapping[str, Any]  # a JSON Schema
Method = TypeVar("Method", bound=Callable[..., Awaitable[Result]])


@dataclass(frozen=True, kw_only=True)
class Call:
    """One try of an action, or one question about it: what it is asked, and the limits it has.

    `key` goes to the service with every try (P2); `timeout` is the seconds this try may take.
    """

    action: str
    key: str
    reference: str
    payload: dict[str, Any]
    timeout: float


class Action(Protocol):
    """A method that steps may name."""

    accepts: Schema | None
    returns: Schema | None

    def __call__(self, agent: Any, call: Call, /) -> Awaitable[Result]:
        """Carry it out."""


@overload
def action(method: Method, /) -> Method: ...
@overload
def action(
    *, accepts: Schema | None = None, returns: Schema | None = None
) -> Callable[[Method], Method]: ...
def action(
    method: Method | None = None,
    /,
    *,
    accepts: Schema | None = None,
    returns: Schema | None = None,
) -> Method | Callable[[Method], Method]:
    """Mark a method of an agent as an action that steps may name.

    `accepts` and `returns` are JSON Schemas of its payload and of its result. People's input is held
    against them: a request that an operator changes, a result that is typed in by hand.
    """

    def mark(method: Method) -> Method:
        vars(method).update(is_action=True, accepts=accepts, returns=returns)
        return method

    return mark if method is None else mark(method)
