"""Steps of workflows, as they are declared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cached_property
from typing import Any

from ..decisions.flow import CHILDREN, PASS, Flow
from ..decisions.step_policy import StepPolicyValues
from ..payloads.placeholders import Loads, each, loads_of
from ..payloads.typed import schema, types_of
from ..states import LOCAL, OnRejection
from .named import Named

UNDECLARED = "?"  # a step must say how it is undone; a check finds those that do not

OF_CHILDREN = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": ["object", "null"]}}},
    "required": ["items"],
    "additionalProperties": False,
}
Compute = Callable[[Any], Any]  # of the request, and to the result: dicts, dataclasses or Structs
Method = Callable[..., Any]  # an action
AGENT: Named[str | type[Any], str] = Named(LOCAL, "name")
ACTION: Named[str | Method, str] = Named("", "__name__")
UNDO: Named[str | Method | None, str | None] = Named(UNDECLARED, "__name__")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One call to one agent: `agent.action(request)`, once every step in `after` is done.

    `agent` is the name of an agent or its class, `action` and `undo` are names of actions or the methods
    themselves: `agent=Hotel, action=Hotel.book`. Names are stored, so a class can be moved.

    `request` is a template (see the module). `after` names earlier steps of the same workflow.

    A step that needs no remote service has `compute` instead of an agent: a function of its request that
    returns its result. A scheduler calls it in the transaction that records the result, so it takes
    milliseconds, does no input or output, and returns the same for the same request. It raises `Rejected`
    where it never can. It has no effect outside, and there is nothing to undo.

    Each other step says how it is undone: `undo` names an action of the same agent, which is sent
    `undo_request` (a template that may take the step's own result, and its `key`); or `irreversible` says
    why it cannot be; or `undo=None`: there is nothing to undo. `charges` is a template {"amount",
    "currency"} of the money that the step takes, in minor units, by fields of the input; an undo returns it.

    `when` is a template of a condition: where it is false, empty, 0 or null as the step's time comes, the
    step is skipped, and what comes after it goes on. A template that takes the result of a step which may
    be skipped names a default, or other steps by `first`. `refused` says by the code of a refusal ("*": any
    other, except of mistakes in code) what follows, before `on_rejection` does: "pass" skips the step,
    "error", "wait" and "undo" are those of `on_rejection`. After `passed(step, code)` another step may do
    it instead.

    `away_after` is for how many seconds it waits while the circuit breaker of its agent is not closed and the
    service answers nothing. If it cannot have been done, it is refused then with the code `away`: by
    `refused={"away": "pass"}` it is skipped, and another step may do it. Without it, a step waits.

    `policy` gives first values to the thresholds that the step has for itself; the others are its agent's.
    Admins change them later.

    A step may end later. An action raises `Later` once its service has accepted the request; or the step has
    no agent, and a `person` of that role or a `signal` of that name brings its result, of the type or schema
    `returns`. `api.complete` reports it. It has to come within `ends_within` seconds (by default a day), or
    by that time: a number, or a template of one or of an ISO 8601 time. `late` says what follows otherwise:
    "error", "undo", or "pass", which skips the step. `remind` are seconds after which its application gets a
    status message that it waits still.

    `not_before` has any step wait for its time: a number of seconds, counted from when all in `after` have
    ended (of a first step, from when the task is made), or a template of one or of an ISO 8601 time; null is
    at once. `when` is decided, and the request is built, as the time comes.

    A step has child tasks if it names their `workflow`: one for each item of the list that `each` stands for,
    or one without `each`. `request` is a template of their input, which takes values of the item by `item`.
    The step ends when they have ended, or `enough` of them are processed; then the others are undone. Its
    result is {"items": [...]}: of each child the `result` of its workflow, or null. After
    `refused={"child_undone": ...}` follows what is to happen if a child was undone by itself; "pass" leaves
    its item null. An undo of the step undoes its children.

    >>> book = Step(name="book", agent="greeter", action="greet", request={"guest": field("name")},
    ...             after=["check"], undo="take_back", undo_request={"key": key("book")})
    """

    name: str
    agent: Named[str | type[Any], str] = AGENT
    action: Named[str | Method, str] = ACTION
    compute: Compute | None = None
    request: Mapping[str, Any] = dataclass_field(default_factory=dict)
    after: Sequence[str] = ()
    undo: Named[str | Method | None, str | None] = UNDO
    undo_request: Mapping[str, Any] = dataclass_field(default_factory=dict)
    irreversible: str = ""
    charges: Mapping[str, Any] | None = None
    when: Any = True
    refused: Mapping[str, str] = dataclass_field(default_factory=dict)
    policy: StepPolicyValues = dataclass_field(default_factory=StepPolicyValues)
    person: str = ""
    signal: str = ""
    returns: type | Mapping[str, Any] | None = None
    ends_within: Any = None
    late: str = OnRejection.ERROR.value
    remind: Sequence[float] = ()
    not_before: Any = None
    workflow: str = ""
    each: Any = None
    enough: int | None = None
    away_after: float | None = None

    def __post_init__(self) -> None:
        local = self.compute is not None or self.is_awaited or self.workflow
        if local and self.undo == UNDECLARED:
            object.__setattr__(self, "undo", None)

    @cached_property
    def loads(self) -> Loads:
        """What its request takes of what is loaded."""
        return loads_of(self.request)

    @cached_property
    def template(self) -> Mapping[str, Any]:
        """What is stored as its request: of a step with children, the inputs of all of them."""
        if not self.workflow:
            return self.request
        return {"items": [self.request] if self.each is None else each(self.request, self.each)}

    @cached_property
    def undo_action(self) -> str:
        """What is stored as the action that undoes it; empty if there is none."""
        if self.workflow:
            return CHILDREN
        return "" if self.undo in {None, UNDECLARED} else str(self.undo)

    @cached_property
    def flow(self) -> Flow | None:
        """What is stored of its condition, its refusals, its waits and its time; None for a plain step."""
        flow = Flow(
            when=self.when, refused=self.refused, person=self.person, signal=self.signal,
            ends_within=self.ends_within, late=self.late, remind=self.remind, not_before=self.not_before,
            workflow=self.workflow, enough=self.enough, away_after=self.away_after,
        )  # fmt: skip
        return None if flow == Flow() else flow

    @cached_property
    def gives(self) -> Mapping[str, Any] | None:
        """The JSON Schema of what a function, a person, a signal or children return; None if unknown."""
        if self.workflow:
            return OF_CHILDREN
        if isinstance(self.returns, Mapping):
            return self.returns
        kind = self.returns or (types_of(self.compute, position=0).gives if self.compute else None)
        return schema(kind) if kind else None

    @property
    def is_awaited(self) -> bool:
        """Return whether its result comes from a person or a signal, and not from an agent."""
        return bool(self.person or self.signal)

    @property
    def may_be_skipped(self) -> bool:
        """Return whether its task may go on without it."""
        refused = () if self.workflow else self.refused.values()  # its own items are null then
        return self.when is not True or PASS in {*refused, self.late}
