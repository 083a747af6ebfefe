"""Actions of an agent, each with the JSON Schemas of its payload and its result."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, overload

from .evidence import Heard

Result = dict[str, Any]
Schema = Mapping[str, Any]  # a JSON Schema
Method = TypeVar("Method", bound=Callable[..., Awaitable[Result]])


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call to the service: a try of an action, or a question about its effect.

    `key` is the idempotency key, the same in every try (P2). `timeout` is the limit of this call, in
    seconds. `attempt` is the attempt's number, from 1; with `in_doubt` an earlier one under the key may
    have had its effect. `heard` is what the service answered, as far as the agent has noted it: the last
    answer is shown with a failure.
    """

    action: str
    key: str
    reference: str
    payload: dict[str, Any]
    timeout: float
    attempt: int = 1
    in_doubt: bool = False
    heard: list[Heard] = field(default_factory=list, compare=False, repr=False)


class Action(Protocol):
    """A method that a step can name."""

    accepts: Schema | None
    returns: Schema | None
    guarded: Sequence[str]

    def __call__(self, agent: Any, call: Call, /) -> Awaitable[Result]:
        """Carry it out."""


@overload
def action(method: Method, /) -> Method: ...
@overload
def action(
    *, accepts: Schema | None = None, returns: Schema | None = None, guarded: Sequence[str] = ()
) -> Callable[[Method], Method]: ...
def action(
    method: Method | None = None,
    /,
    *,
    accepts: Schema | None = None,
    returns: Schema | None = None,
    guarded: Sequence[str] = (),
) -> Method | Callable[[Method], Method]:
    """Mark a method of an agent as an action that a step can name.

    `accepts` and `returns` are JSON Schemas of its payload and its result. They validate what people
    enter: a changed request, and a result that was entered by hand. `guarded` names fields of the payload
    that one person must not change alone: amounts, and ids of other records.
    """

    def mark(method: Method) -> Method:
        vars(method).update(is_action=True, accepts=accepts, returns=returns, guarded=guarded)
        return method

    return mark if method is None else mark(method)
