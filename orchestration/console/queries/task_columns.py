"""The columns of the list of tasks: what each is called, and by what it is sorted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, CharField, F, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import Coalesce, Collate, NullIf

from ... import registry
from ...models import Step
from ...states import LIVE_TASK_STATES, StepState, TaskState
from ...waiting.next_step import TELLING
from .search_terms import InvalidValue, curly

Key = int | str | datetime | None


def _plain(text: str) -> str:
    if "\0" in text:
        raise ValueError("a null character")
    return text


def _number(text: str) -> int:
    number = int(text)
    if abs(number) >= 2**63:
        raise ValueError(f"{number} is too large")
    return number


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return moment


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column; `key` makes what it is sorted by, NULL where it shows nothing: such tasks come last.

    `walk`: an index has them in this order, or the values are few, so any number can be sorted.
    `descending`: the largest come first at first. `read` reads a key from an address.
    """

    title: str
    key: Callable[[], Any] = lambda: F("id")
    read: Callable[[str], Key] = _plain
    walk: bool = False
    descending: bool = False
    usual: bool = True
    number: bool = False
    personal: bool = False


def _of_step(value: Any, failed: str = "") -> Callable[[], Any]:
    """Return the key that is of the step that says where a task stands; none once it has ended.

    Of a task in error that is a step in error, whose `failed`, or else value, the index step_in_error has.
    """
    in_error, *others = TELLING

    def key() -> Any:
        return Case(
            When(state=TaskState.ERROR, then=_first((in_error,), F(failed) if failed else value)),
            When(state__in=LIVE_TASK_STATES, then=_first(others, value)),
        )

    return key


def _first(states: Sequence[StepState], value: Any) -> Subquery:
    """Return a value of the first of a task's steps, by their states, then in their order."""
    last = When(process_state=StepState.WAITING, pending_since=None, then=Value(len(states)))
    ranks = (When(process_state=state, then=Value(n)) for n, state in enumerate(states))
    rank = Case(
        last, *ranks
    )  # a step that waits for its time goes before those that wait for others
    either = Q(process_state__in=states) if states[1:] else Q(process_state=states[0])
    steps = Step.objects.filter(either, task=OuterRef("id"))
    return Subquery(steps.order_by(rank, "id").values(key=value)[:1])


def _text(key: Callable[[], Any]) -> Callable[[], Any]:
    """Return a key of text, in the order of its characters; NULL where it is empty."""
    return lambda: Collate(NullIf(key(), Value(""), output_field=CharField()), "C")


COLUMNS: dict[str, Column] = {
    "state": Column(title="State", key=_text(lambda: F("state")), walk=True),
    "task": Column(
        title="Task",
        key=_text(lambda: Coalesce(NullIf("label", Value("")), "reference")),
    ),
    "reference": Column(title="Reference", key=_text(lambda: F("reference")), usual=False),
    "workflow": Column(title="Workflow", key=_text(lambda: F("workflow")), walk=True, usual=False),
    "about": Column(title="About", key=_text(lambda: F("about_reference")), usual=False),
    "contact": Column(title="Contact", key=_text(lambda: F("contact")), personal=True),
    "step": Column(title="Step", key=_text(_of_step(F("name")))),
    "agent": Column(title="Agent", key=_text(_of_step(F("agent"))), usual=False),
    "next": Column(
        title="Next",
        key=_of_step(Coalesce("run_after", "complete_by"), failed="resolve_by"),
        read=_moment,
    ),
    "error": Column(title="Last error", key=_text(_of_step(F("error_code")))),
    "attempts": Column(
        title="Attempts",
        key=lambda: NullIf(_of_step(F("attempt"))(), Value(0)),
        read=_number,
        descending=True,
        number=True,
    ),
    "value": Column(
        title="Value",
        key=lambda: NullIf("value", Value(0)),
        read=_number,
        walk=True,
        descending=True,
        number=True,
    ),
    "priority": Column(
        title="Priority",
        key=lambda: F("priority"),
        read=_number,
        descending=True,
        usual=False,
        number=True,
    ),
    "due": Column(
        title="Due",
        key=lambda: Case(When(ended_at=None, then=F("complete_by"))),
        read=_moment,
        walk=True,
    ),
    "created": Column(title="Created", walk=True, descending=True),
    "ended": Column(
        title="Ended",
        # no index has this: along one, few tasks would be looked for among all
        key=lambda: Case(When(ended_at__isnull=False, then=F("ended_at"))),
        read=_moment,
        walk=True,
        descending=True,
        usual=False,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Order:
    """The order of a list: by a column, the largest first if it is `descending`; ties newest first."""

    column: str
    descending: bool

    @property
    def text(self) -> str:
        """Return it as an address names it."""
        return f"-{self.column}" if self.descending else self.column

    @property
    def by_id(self) -> bool:
        """Return whether ids have this order: they are made in the order of time."""
        return self.column == "created"

    @property
    def of(self) -> Column:
        """Return its column."""
        return COLUMNS[self.column]


NEWEST_FIRST = Order(column="created", descending=True)


def allowed(*, personal: bool) -> list[str]:
    """Return the columns that may be shown."""
    return [name for name, column in COLUMNS.items() if personal or not column.personal]


def usual(*, personal: bool) -> tuple[str, ...]:
    """Return the columns that are shown unless others are chosen."""
    return tuple(name for name in allowed(personal=personal) if COLUMNS[name].usual)


def order_of(text: str, *, personal: bool) -> Order:
    """Return the order that a text names: a column, with a minus for the largest first."""
    (name,) = _known([text.removeprefix("-")], personal=personal)
    return Order(column=name, descending=text.startswith("-"))


def read(text: str, *, personal: bool) -> tuple[str, ...]:
    """Return the columns that a text names, parted by commas; the task is always one of them."""
    names = _known([name for name in text.split(",") if name], personal=personal)
    return tuple(dict.fromkeys(names if "task" in names else ["task", *names]))


def _known(names: list[str], *, personal: bool) -> list[str]:
    known = allowed(personal=personal)
    for name in names:
        if name not in known:
            raise InvalidValue(
                f"unknown column “{name}”{curly(registry.suggest(name, known))}",
                registry.nearest(name, known),
            )
    return names
