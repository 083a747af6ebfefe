"""Actions of an agent, each with the JSON Schemas of its payload and its result."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, overload

from ..payloads import typed
from ..states import Health
from .errors import Rejected
from .evidence import Heard

Result = dict[str, Any]
Schema = Mapping[str, Any]  # a JSON Schema
Method = TypeVar("Method", bound=Callable[..., Awaitable[Any]])


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call to the service: a try of an action, or a question about its effect.

    `key` is the idempotency key, the same in every try (P2). `timeout` is the limit of this call, in
    seconds. `attempt` is the attempt's number, from 1; with `in_doubt` an earlier one under the key may
    have had its effect. `accepted` is the value of the last `Later`, where the service is asked about a
    call that it accepted. `heard` is what the service answered, as far as the agent has noted it: the last
    answer is shown with a failure.

    >>> call = Call(action="book", key="42:book:1", reference="42", payload={"nights": 2}, timeout=5.0)
    >>> call.payload["nights"], call.in_doubt  # as an action reads it
    (2, False)
    """

    action: str
    key: str
    reference: str
    payload: dict[str, Any]
    timeout: float
    attempt: int = 1
    in_doubt: bool = False
    accepted: Mapping[str, Any] = field(default_factory=dict)
    heard: list[Heard] = field(default_factory=list, compare=False, repr=False)


class Action(Protocol):
    """A method that a step can name."""

    accepts: Schema | None
    returns: Schema | None
    guarded: Sequence[str]
    takes: type | None
    gives: type | None
    unread: str  # what keeps its payload from having a type, for the system checks

    def __call__(self, agent: Any, call: Call, /, *payload: Any) -> Awaitable[Any]:
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

    A second parameter gets the payload as the dataclass or msgspec Struct that it is annotated with, and
    the method may return one. Their JSON Schemas, or those given as `accepts` and `returns`, validate what
    people enter: a changed request, and a result that was entered by hand. `guarded` names fields of the
    payload that one person must not change alone: amounts, and ids of other records.

    >>> class Bank(HttpAgent):
    ...     name, base_url = "bank", "https://bank.example"
    ...     @action(accepts={"type": "object", "required": ["amount"]}, guarded=["amount"])
    ...     async def transfer(self, call):
    ...         return await self.post(call, "/transfers", body=call.payload)
    >>> list(Bank.actions())
    ['canary', 'transfer']
    """

    def mark(method: Method) -> Method:
        types = typed.types_of(method, position=2)
        vars(method).update(
            is_action=True,
            takes=types.takes,
            gives=types.gives,
            unread=types.unread,
            accepts=accepts or (types.takes and typed.schema(types.takes)),
            returns=returns or (types.gives and typed.schema(types.gives)),
            guarded=guarded,
        )
        return method

    return mark if method is None else mark(method)


async def perform(act: Action, agent: Any, call: Call) -> Result:
    """Return the result of an action; an action without a result gives an empty one."""
    if act.takes is None:
        returned = await act(agent, call)
    else:
        try:
            payload: Any = typed.read(call.payload, act.takes)
        except ValueError as error:
            refused = f"the request is not what {call.action} takes: {error}"
            raise Rejected("invalid_request", refused, health=Health.NOTHING) from None
        returned = await act(agent, call, payload)
    result: Result = typed.result(returned, act.gives, call.action) or {}
    return result
