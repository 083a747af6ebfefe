"""Workflows as data: which steps, by which agents or functions, in which order, with which requests.

A request is a template: plain JSON with `field("…")` where a value of the task's input belongs and
`result("step", "…")` where one of an earlier step's result does. Templates are stored with each
task, so a deploy never changes an order in flight, and they are checked when the server starts:
an unknown step, a cycle or a result of a step that need not be done yet is found before it runs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from ..payloads.limits import LONGEST_CONTACT, LONGEST_CURRENCY, LONGEST_LABEL
from ..payloads.moments import moment, seconds_or_moment
from ..payloads.placeholders import Unresolved, ends, has, near, placeholders, required, resolve
from .step import Step

# of times that people give: Postgres goes on where Python's calendar ends
LARGEST_VALUE = 10**18  # minor units; the column ends at nine of these


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """One submission as the application's `record` hook sees it.

    >>> def record(batch):
    ...     guests = [(new.reference, new.data["name"]) for new in batch]  # to be written as rows
    >>> record([Submitted(reference="42", data={"name": "Ada"})])
    """

    reference: str
    data: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A request about a task, as it is carried out.

    `what` is "undo", "undo_part", "resubmit", "complete" or "amend".
    `data` has the fields of the input that it changes, with their new values.

    >>> from uuid import uuid4
    >>> def accepted(batch):
    ...     undone = [request.reference for request in batch if request.what == "undo"]
    >>> accepted([Accepted(reference="42", id=uuid4(), what="undo")])
    """

    reference: str
    id: UUID
    what: str
    step: str = ""
    note: Mapping[str, Any] | None = None
    data: Mapping[str, Any] = dataclass_field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AskedChange:
    """What a request changes that one person must not change alone, before it is carried out.

    `request` has the changed fields of the step's request, `data` those of the task's input, by name;
    `task_data` is the input as it is, and `note` the application's own. Without a `step` it is the input of
    a running task that changes (`amend`).

    >>> def permit(asked):
    ...     if asked.request or asked.data.keys() != {"email"}:
    ...         raise Refused("a guest changes the address only")
    >>> data, new = {"name": "Ada", "email": "ada@x.example"}, {"email": "ada@y.example"}
    >>> permit(AskedChange(reference="42", step="mail", request={}, data=new, task_data=data))
    """

    reference: str
    step: str
    request: Mapping[str, Any]
    data: Mapping[str, Any]
    task_data: Mapping[str, Any]
    note: Mapping[str, Any] | None = None


class Refused(ValueError):
    """Raised by an application: it can never take this submission, message or request, and why.

    A person decides about it. After any other exception it is tried again by itself.
    """


def _no_label(_data: Mapping[str, Any]) -> str:
    """Serve a workflow whose tasks are called by their references."""
    return ""


def _write_nothing(_batch: Sequence[Any]) -> None:
    """Serve a workflow whose application has no rows of its own, or leaves them as they are."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What an application finds by a word: beginnings of labels, references of tasks; `more` are not named.

    >>> def find(words, personal):
    ...     return {word: Found(references=["42"]) for word in words if personal and word == "ada"}
    >>> find(["ada"], True)["ada"].references
    ['42']
    """

    labels: Sequence[str] = ()
    references: Sequence[str] = ()
    more: bool = False


Load = Callable[[Sequence[str]], Mapping[str, Mapping[str, Any]]]


def _permit_nothing(asked: AskedChange) -> None:
    """Serve a workflow whose application never changes what is guarded."""
    names = ", ".join([*asked.request, *asked.data])
    raise Refused(f"it changes {names} of {asked.step}, which the workflow permits no request")


@dataclass(frozen=True, kw_only=True)
class TaskCard:
    """How operators know a task; `amount` in minor units."""

    label: str
    contact: str
    amount: int
    currency: str


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """The steps of one kind of task.

    `record` is called with a batch of submissions inside the transaction that makes their tasks: what it
    writes is committed with them or not at all (P19). It raises `Refused` for one that can never be taken;
    after any other exception a submission is tried again. `accepted` is called likewise with requests of
    the application about its tasks (`api.request_undo`), inside the transaction that carries them out.
    `permit` is called before, with a request that changes guarded fields of a step, or of the input what
    these are made from: it raises `Refused` unless the change is one that the application makes, by the
    task's own input and not by what the request says of it. Without it no request changes them. `remove`
    is called with references in the transaction that removes their tasks, which ended long ago: the
    application removes its own rows, or keeps them.

    `result` is a template of what its tasks come to, for the step whose children they are; it may take the
    input and the results of all steps. Without it that is {}.

    `time_allowed` is the seconds until a task counts as overdue. `run_after` is a template of the time
    before which no step begins: ISO 8601 with an offset, or null. `owner_application` is an application
    that is notified of every task of any submitter, and of each change of its steps: that which keeps what
    `record` wrote. Operators see tasks of a `background` one if they ask for them, or something is wrong.

    What operators see and search for is taken from the input when the task is made: `label` returns what
    people call it, if that is not its reference; `contact` is a template of whom it is for (an address,
    say), `value` one {"amount", "currency"} of what is at stake, in minor units. `personal` are templates
    of the fields that only those see who may see personal data; the contact is one by itself. `find` says
    what else they find tasks by: it is called with plain words of a search that must all hold, and whether
    who asks may see personal data, and returns what it finds by each: some hundred references at most, by
    a few queries, each by an index. It need not repeat references, labels, ids and contacts.

    `load` returns, by reference, what requests take by `loaded(...)`: a scheduler calls it with a batch of
    references whose requests are about to be sent, outside of any transaction of the engine's, and it costs
    a constant number of queries. So what changes in the application's own rows reaches the next step.
    `private` names fields of the input that only `record` is given: the task is made without them.

    `keep_days` is for how long its ended tasks are kept, None for ever: the first value of a retention
    policy, which admins change.

    `not_by_hand` is why operators must not start its tasks, as a sentence for them; empty: they may.
    `refuse_by_hand` returns such a sentence for a task with this input, or "".

    >>> mail = Step(name="mail", agent="greeter", action="greet", request={"to": field("email")}, undo=None)
    >>> register(Workflow(name="welcome", steps=[mail], contact=field("email"), time_allowed=86_400.0))
    """

    name: str
    steps: Sequence[Step]
    record: Callable[[Sequence[Submitted]], None] = _write_nothing
    accepted: Callable[[Sequence[Accepted]], None] = _write_nothing
    permit: Callable[[AskedChange], None] = _permit_nothing
    load: Load | None = None
    remove: Callable[[Sequence[str]], None] = _write_nothing
    find: Callable[[Sequence[str], bool], Mapping[str, Found]] = lambda _words, _personal: {}
    private: Sequence[str] = ()
    result: Mapping[str, Any] = dataclass_field(default_factory=dict)
    owner_application: str = ""
    time_allowed: float = 3600.0
    run_after: Mapping[str, Any] | None = None
    label: Callable[[Mapping[str, Any]], str] = _no_label
    contact: Mapping[str, Any] | None = None
    value: Mapping[str, Any] | None = None
    personal: Sequence[Mapping[str, Any]] = ()
    background: bool = False
    keep_days: float | None = 365.0
    not_by_hand: str = ""
    refuse_by_hand: Callable[[Mapping[str, Any]], str] = _no_label

    @property
    def templates(self) -> list[Any]:
        """What takes values of the input."""
        templates: list[Any] = [self.contact, self.value, self.run_after, self.result]
        for step in self.steps:
            templates += [
                step.request, step.undo_request, step.charges, step.when, step.ends_within,
                step.each, step.not_before,
            ]  # fmt: skip
        return templates

    @cached_property
    def begins_plainly(self) -> bool:
        """Whether each first step may begin as a task is made: none has a condition, or a time."""
        first = [step for step in self.steps if not step.after]
        return all(step.when is True and step.not_before is None for step in first)

    @cached_property
    def begins_awaiting(self) -> bool:
        """Whether a first step awaits a person or a signal."""
        return any(step.is_awaited for step in self.steps if not step.after)

    @cached_property
    def times_of_input(self) -> Sequence[tuple[str, Any]]:
        """The steps whose earliest time is known from the input alone, each with its template."""
        timed = [(step.name, step.not_before) for step in self.steps if step.not_before is not None]
        return [
            (name, template)
            for name, template in timed
            if not any(origin for origin, *_ in placeholders(template)) and not list(ends(template))
        ]

    @cached_property
    def fields(self) -> tuple[tuple[str, ...], ...]:
        """The paths of the input that its steps, contact, value and times need, each once."""
        paths = (path for template in self.templates for path in required(template))
        return tuple(dict.fromkeys(tuple(names) for origin, *names in paths if not origin))

    def public(self, data: Any) -> Any:
        """Return what a task has of the input of its submission: all but what is private."""
        if not self.private or not isinstance(data, dict):
            return data
        return {name: value for name, value in data.items() if name not in self.private}

    def require(self, data: Mapping[str, Any]) -> None:
        """Raise `Unresolved` if `data` lacks fields that its tasks take; the error names all of them.

        Raise `Refused` for a time or value that no task can have.
        """
        if missing := [path for path in self.fields if not has(data, path)]:
            named = (".".join(path) + near(data, path) for path in missing)
            raise Unresolved(f"the input has no {', '.join(named)}")
        self.earliest(data)
        for name, template in self.times_of_input:
            self._require_time(name, resolve(template, data, {}))
        self.worth(data)

    def _require_time(self, step: str, value: Any) -> None:
        """Raise `Refused` if a value is none of a step's `not_before`."""
        try:
            if value is not None:
                seconds_or_moment(value)
        except ValueError as error:
            raise Refused(f"the not_before of {step} {error}") from None

    def earliest(self, data: Mapping[str, Any]) -> datetime | None:
        """Return when the first steps of a task may begin; raise `Refused` if that is not a time."""
        text = resolve(self.run_after, data, {})
        if text is None:
            return None
        try:
            return moment(text)
        except ValueError as error:
            raise Refused(f"its run_after {error}") from None

    def card(self, data: Mapping[str, Any]) -> "TaskCard":
        """Return how operators know a task with this input; raise `Unresolved` if it lacks a field."""
        amount, currency = self.worth(data)
        return TaskCard(
            label=self.label(data)[:LONGEST_LABEL],
            contact=str(resolve(self.contact, data, {}) or "").lower()[:LONGEST_CONTACT],
            amount=amount,
            currency=currency[:LONGEST_CURRENCY],
        )

    def worth(self, data: Mapping[str, Any]) -> tuple[int, str]:
        """Return the value of a task with this input, and its currency; raise `Refused` if it is none."""
        value = resolve(self.value, data, {}) or {}
        amount = value.get("amount", 0)
        if not isinstance(amount, int) or abs(amount) >= LARGEST_VALUE:
            raise Refused(
                f"its value {amount!r} is not a whole number of minor units below {LARGEST_VALUE}"
            )
        return amount, str(value.get("currency", ""))
