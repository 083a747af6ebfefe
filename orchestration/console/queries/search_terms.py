"""The qualifiers of a search, their values, and the filters they stand for."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.utils.dateparse import parse_date, parse_datetime

from ... import registry
from ...database import clock
from ...models import Task
from ...payloads.currencies import digits
from ...states import TaskState
from ...workflows.workflow import Found

COMPARISON = re.compile(r"(>=|<=|>|<|=|)(\d{1,12})$")
AMOUNT = re.compile(r"(>=|<=|>|<|=|)(\d{1,12}(?:\.\d{1,3})?)([A-Za-z]{3})?$")
COMPARED = re.compile(r"(>=|<=|>|<|=|)(.*)$", re.DOTALL)
SPAN = re.compile(r"(\d{1,4})(min|h|d|w)$")
UNITS = {"min": 60, "h": 3600, "d": 86_400, "w": 604_800}  # seconds
TROUBLE = ("overdue", "retrying", "held", "awaiting", "delayed")
LEAST = timedelta(milliseconds=1)  # ids have the time to the millisecond


class InvalidValue(ValueError):
    """An invalid value of a term: the text says which values are valid, `near` suggests one."""

    def __init__(self, text: str, near: str = "") -> None:
        super().__init__(text)
        self.near = near


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A comparison with a number: `sign` is one of = > >= < <=; of a `currency`, if it is named."""

    sign: str
    number: int
    currency: str = ""


@dataclass(frozen=True, kw_only=True)
class Filters:
    """One way to be found: all that is named here is true of a task; empty means any.

    `step`, `agent`, `error`, `attempts`, `alert` and `incident` are of one step that the task stands at: in
    error, at work or due. Together with the state `error` it is one in error. `values` are in minor
    units; without a currency, in hundredths of any. `since` and `until` bound when it was received.
    Of `without` none is true of the task, whichever of its steps is meant.

    `personal`: whether who asks may see personal data, and so find tasks by it. `foreground`: tasks that
    only serve others are left out, unless something is wrong with them.
    """

    personal: bool = False
    foreground: bool = False

    words: tuple[str, ...] = ()
    state: str = ""
    troubles: tuple[str, ...] = ()
    workflow: str = ""
    step: str = ""
    agent: str = ""
    error: str = ""
    reference: str = ""
    about: str = ""
    parent: str = ""
    contact: str = ""
    alert: int | None = None
    incident: int | None = None
    attempts: tuple[Bound, ...] = ()
    values: tuple[Bound, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    without: tuple["Filters", ...] = ()
    matches: dict[str, Found] = field(default_factory=dict, compare=False)

    @property
    def by_step(self) -> bool:
        """Return whether it matters which step a task is at."""
        return bool(
            self.step or self.agent or self.error or self.alert or self.incident or self.attempts
        )


def intersect(first: Filters, second: Filters) -> Filters | None:
    """Return filters that match what both match; None if no task can match."""
    merged: dict[str, Any] = {}
    for name in NARROWING:
        mine, theirs = getattr(first, name), getattr(second, name)
        if mine == theirs or not theirs:
            merged[name] = mine
        elif not mine:
            merged[name] = theirs
        elif isinstance(mine, tuple):
            merged[name] = tuple(dict.fromkeys(mine + theirs))
        elif name in {"since", "until"}:
            merged[name] = max(mine, theirs) if name == "since" else min(mine, theirs)
        elif name in BEGINNINGS and mine.startswith(theirs):
            merged[name] = mine
        elif name in BEGINNINGS and theirs.startswith(mine):
            merged[name] = theirs
        else:
            return None
    return replace(first, **merged)


NARROWING = tuple(
    attribute.name
    for attribute in fields(Filters)
    if attribute.name not in {"personal", "foreground", "matches"}
)
BEGINNINGS = ("error", "reference", "about")  # each longer one is among those of a shorter one
FilterFields = dict[str, Any]  # fields of `Filters`
Reader = Callable[[str], FilterFields]


def _named(what: str, field: str, known: Callable[[], Iterable[str]]) -> Reader:
    """Return a reader of a name; the beginning of one will do."""

    def read(value: str) -> FilterFields:
        names = sorted(set(known()))
        begin = [name for name in names if name.startswith(value.lower())]
        if value in names or (value and len(begin) == 1):
            return {field: value if value in names else begin[0]}
        if begin:
            raise InvalidValue(
                f"the value is ambiguous: {' or '.join(f'“{name}”' for name in begin)}", begin[0]
            )
        near = registry.nearest(value, names)
        raise InvalidValue(f"unknown {what}{curly(registry.suggest(value, names))}", near)

    return read


_declared_workflow = _named("workflow", "workflow", lambda: registry.workflows)


def _workflow(value: str) -> FilterFields:
    """Read the name of a workflow: one that is declared, or one that is gone and has tasks still."""
    try:
        return _declared_workflow(value)
    except InvalidValue:
        if Task.objects.filter(workflow=value).exists():
            return {"workflow": value}
        raise


def _trouble(value: str) -> FilterFields:
    name = _named("condition", "trouble", lambda: TROUBLE)(value)["trouble"]
    return {"troubles": (name,)}


def _number_of(field: str) -> Reader:
    def read(value: str) -> FilterFields:
        if not value.isdecimal() or len(value) > 19 or int(value) not in range(1, 2**63):
            raise InvalidValue("enter a number, such as 7")
        return {field: int(value)}

    return read


def _attempts(value: str) -> FilterFields:
    match = COMPARISON.match(value.replace(",", ""))
    if match is None:
        raise InvalidValue("enter a number or a comparison, such as >2")
    return {"attempts": (Bound(sign=match[1] or "=", number=int(match[2])),)}


def _amount(value: str) -> FilterFields:
    match = AMOUNT.match(value.replace(",", ""))
    if match is None:
        raise InvalidValue("enter an amount or a comparison, such as >100 or >5000JPY")
    currency = (match[3] or "").upper()
    minor = Decimal(match[2]).scaleb(digits(currency))
    if minor != int(minor):
        most = digits(currency) or "no"
        raise InvalidValue(f"{currency or 'the amount'} has {most} decimal places")
    return {"values": (Bound(sign=match[1] or "=", number=int(minor), currency=currency),)}


def _after(value: str) -> FilterFields:
    return {"since": _moments(value)[0]}


def _before(value: str) -> FilterFields:
    return {"until": _moments(value)[0]}


def _created(value: str) -> FilterFields:
    """Read a comparison with a day or a moment: `>` a day is after its end."""
    match = COMPARED.match(value)
    sign, moment = (match[1], match[2]) if match else ("", value)
    begin, end = _moments(moment)
    return {
        ">": {"since": end},
        ">=": {"since": begin},
        "<": {"until": begin},
        "<=": {"until": end},
    }.get(sign, {"since": begin, "until": end})


def _moments(value: str) -> tuple[datetime, datetime]:
    """Return the beginning and the end of a day, of a moment (UTC unless it says), or of so long ago."""
    if match := SPAN.match(value):
        moment = clock.database_now() - timedelta(seconds=int(match[1]) * UNITS[match[2]])
        return moment, moment + LEAST
    try:
        if day := parse_date(value):
            begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
            return begin, begin + timedelta(days=1)
        parsed = parse_datetime(value)
        if parsed is not None:
            parsed = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
            return parsed, parsed + LEAST
    except (ValueError, OverflowError):
        pass
    raise InvalidValue("enter a date or a duration, such as 2026-01-31, 2026-01-31T12:00 or 2h")


def _begins(field: str) -> Reader:
    return _text(field, "the beginning of the text")


def _schedule(value: str) -> FilterFields:
    """Read the name of a schedule: the references of its tasks begin with it."""
    return _begins("reference")(value and f"{value.removesuffix('/')}/")


def _text(field: str, what: str) -> Reader:
    def read(value: str) -> FilterFields:
        if not value:
            raise InvalidValue(f"enter {what}")
        return {field: value}

    return read


def _contact(value: str) -> FilterFields:
    return _text("contact", "a contact")(value.lower())


QUALIFIERS: dict[str, Reader] = {
    "state": _named("state", "state", lambda: TaskState.values),
    "is": _trouble,
    "workflow": _workflow,
    "step": _named(
        "step", "step", lambda: (s.name for w in registry.workflows.values() for s in w.steps)
    ),
    "agent": _named("agent", "agent", lambda: registry.agents),
    "error": _begins("error"),
    "attempts": _attempts,
    "value": _amount,
    "after": _after,
    "before": _before,
    "created": _created,
    "reference": _begins("reference"),
    "schedule": _schedule,
    "about": _begins("about"),
    "parent": _text("parent", "the reference or the id of a task with children"),
    "contact": _contact,
    "alert": _number_of("alert"),
    "incident": _number_of("incident"),
}
# of these a task has one
ONE_ONLY = ("state", "workflow", "step", "agent", "parent", "contact", "alert", "incident")


def understood(name: str, value: str, *, personal: bool) -> tuple[str, Filters]:
    """Return a term's value, its full name and its filter fields; raise `InvalidValue` if it is invalid."""
    if "\0" in value:
        raise InvalidValue("the value cannot contain a null character")
    if '"' in value:
        raise InvalidValue("the value cannot contain a quotation mark")
    if name == "contact" and not personal:
        raise InvalidValue("this requires the permission to see personal data")
    meaning = QUALIFIERS[name](value)
    (first, *_) = meaning.values()
    whole = first[0] if isinstance(first, tuple) else first
    return whole if isinstance(whole, str) else value, Filters(personal=personal, **meaning)


def curly(suggestion: str) -> str:
    """Return a suggestion of the registry with the quotation marks of pages."""
    return re.sub(r"'([^']*)'", r"“\1”", suggestion)


def as_uuid(word: str) -> UUID | None:
    """Return the id that a word is, if it is one."""
    try:
        return UUID(word)
    except ValueError:
        return None
