"""What may be asked of the list of tasks: words and qualifiers, as typed or as a form sends them.

`step:hello error:timeout attempts:>2 after:2d "A-1 17"`: every qualifier narrows, a plain word is a
reference, a label, an id or a contact. The address of the list takes the same as `q=…`, as fields
of the qualifiers' names, or as both.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.utils.dateparse import parse_date, parse_datetime

from .. import registry
from ..database import clock
from ..payloads.money import digits
from ..states import TaskState

LONGEST = 500  # characters of a query
TOKEN = re.compile(r'(?:([A-Za-z_]+):)?(?:"([^"]*)"|(\S+))')
BARE = re.compile(r"([A-Za-z_]+):$")
COMPARISON = re.compile(r"(>=|<=|>|<|=|)(\d{1,12})$")
AMOUNT = re.compile(r"(>=|<=|>|<|=|)(\d{1,12}(?:\.\d{1,3})?)([A-Za-z]{3})?$")
SPAN = re.compile(r"(\d{1,4})(min|h|d|w)$")
UNITS = {"min": 60, "h": 3600, "d": 86_400, "w": 604_800}  # seconds
Reader = Callable[[str], Any]
TROUBLE = ("overdue", "retrying", "held")
BACKGROUND = "background"


class Nonsense(ValueError):
    """A part of a query that cannot be understood; its text says what would be."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A comparison with a number: `sign` is one of = > >= < <=; of a `currency`, if it is named."""

    sign: str
    number: int
    currency: str = ""


@dataclass(frozen=True, kw_only=True)
class Filters:
    """What the list is narrowed to; empty means any.

    `step`, `agent`, `error` and `attempts` are of where a task is now: at a step in error, at work
    or due. `value` is in minor units; without a currency, in hundredths of any. `since` and `until`
    bound when it was received. `personal`: whether who asks may see personal data, and so find
    tasks by it. `besides` names what is left out otherwise.
    """

    personal: bool = False

    words: tuple[str, ...] = ()
    state: str = ""
    trouble: str = ""
    workflow: str = ""
    step: str = ""
    agent: str = ""
    error: str = ""
    reference: str = ""
    contact: str = ""
    alert: int | None = None
    incident: int | None = None
    attempts: Bound | None = None
    value: Bound | None = None
    since: datetime | None = None
    until: datetime | None = None
    besides: str = ""

    @property
    def foreground(self) -> bool:
        """Return whether tasks that only serve others are left out: nothing but words was asked."""
        return replace(self, words=(), personal=False) == Filters()

    @property
    def by_step(self) -> bool:
        """Return whether it matters which step a task is at."""
        return bool(
            self.step or self.agent or self.error or self.alert or self.incident or self.attempts
        )


@dataclass(frozen=True, kw_only=True)
class Search:
    """A query as it was understood: `given` by qualifier, `text` in one line, and what is wrong.

    As long as something is wrong, `text` is what was typed.
    """

    filters: Filters
    given: Mapping[str, str]
    text: str
    problems: tuple[str, ...]


def read(asked: Mapping[str, str], *, personal: bool) -> Search:
    """Return what an address's parameters ask for; without `personal`, contacts cannot be sought."""
    query = asked.get("q", "")
    problems: list[str] = []
    if len(query) > LONGEST:
        problems.append(f"The search is too long: at most {LONGEST} characters are allowed.")
    if query.count('"') % 2:
        problems.append("A quotation mark is not closed.")
    words: list[str] = []
    given: dict[str, str] = {}
    for name, value in [*_tokens(query[:LONGEST]), *_fields(asked)]:
        if not name:
            words.append(value)
        elif name not in QUALIFIERS:
            near = registry.suggest(name, QUALIFIERS)
            problems.append(_ended(f"Unknown filter “{name}:”{_curly(near)}"))
        elif given.setdefault(name, value) != value:
            problems.append(f"“{name}:” is given twice: “{given[name]}” and “{value}”.")
    known = _understood(given, problems, personal=personal)
    if any("\0" in word for word in words):
        problems.append("A word cannot contain a null character.")
    return Search(
        filters=Filters(words=tuple(words), personal=personal, **({} if problems else known)),
        given=given,
        text=query if problems else wording(words, given),  # what was typed is there to mend
        problems=tuple(problems),
    )


def wording(words: Sequence[str], given: Mapping[str, str]) -> str:
    """Return a query in one line, as a user would type it."""
    return " ".join(_quoted(*one) for one in [*(("", word) for word in words), *given.items()])


def _understood(given: dict[str, str], problems: list[str], *, personal: bool) -> dict[str, Any]:
    """Return the fields of `Filters` that are given; writes names in full where they were begun."""
    known = {}
    for name, value in list(given.items()):
        field, reader = QUALIFIERS[name]
        try:
            known[field] = _allowed(name, reader, personal=personal)(value)
        except Nonsense as problem:
            what = f"“{name}:{value}”:" if value else f"“{name}:” has no value;"
            problems.append(_ended(f"{what} {problem}".replace("\0", "?")))
        else:
            if isinstance(known[field], str):
                given[name] = known[field]
    return known


def _allowed(name: str, reader: Reader, *, personal: bool) -> Reader:
    def read(value: str) -> Any:
        if "\0" in value:
            raise Nonsense("the value cannot contain a null character")
        if name == "contact" and not personal:
            raise Nonsense("this requires the permission to see personal data")
        return reader(value)

    return read


def _tokens(query: str) -> Iterable[tuple[str, str]]:
    for match in TOKEN.finditer(query):
        name, quoted, plain = match.groups()
        value = quoted if quoted is not None else plain
        if not name and plain and (bare := BARE.match(plain)):
            name, value = bare[1], ""
        if (name or "").lower() in {"http", "https"}:  # an address that was pasted
            name, value = None, f"{name}:{value}"
        if name or value:
            yield (name or "").lower(), value


def _fields(asked: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    for name in QUALIFIERS:
        if value := asked.get(name, "").strip():
            yield name, value


def _quoted(name: str, value: str) -> str:
    text = f'"{value}"' if re.search(r"\s", value) or (":" in value and not name) else value
    return f"{name}:{text}" if name else text


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith("?") else f"{sentence}."


def _curly(suggestion: str) -> str:
    return re.sub(r"'([^']*)'", r"“\1”", suggestion)


def _one_of(what: str, known: Callable[[], Iterable[str]]) -> Reader:
    """Return a reader of a name; the beginning of one will do."""

    def read(value: str) -> str:
        names = sorted(set(known()))
        begin = [name for name in names if name.startswith(value.lower())]
        if value in names or (value and len(begin) == 1):
            return value if value in names else begin[0]
        if begin:
            raise Nonsense(f"the value is ambiguous: {' or '.join(f'“{name}”' for name in begin)}")
        near = _curly(registry.suggest(value, names))
        raise Nonsense(f"unknown {what}{near}")

    return read


def _number(value: str) -> int:
    if not value.isdecimal() or len(value) > 19 or int(value) not in range(1, 2**63):
        raise Nonsense("enter a number, such as 7")
    return int(value)


def _comparison(value: str) -> Bound:
    match = COMPARISON.match(value.replace(",", ""))
    if match is None:
        raise Nonsense("enter a number or a comparison, such as >2")
    return Bound(sign=match[1] or "=", number=int(match[2]))


def _amount(value: str) -> Bound:
    match = AMOUNT.match(value.replace(",", ""))
    if match is None:
        raise Nonsense("enter an amount or a comparison, such as >100 or >5000JPY")
    currency = (match[3] or "").upper()
    minor = Decimal(match[2]).scaleb(digits(currency))
    if minor != int(minor):
        most = digits(currency) or "no"
        raise Nonsense(f"{currency or 'the amount'} has {most} decimal places")
    return Bound(sign=match[1] or "=", number=int(minor), currency=currency)


def _moment(value: str) -> datetime:
    """Return the moment of a date, of a date with a time (UTC unless it says), or so long ago."""
    if match := SPAN.match(value):
        return clock.database_now() - timedelta(seconds=int(match[1]) * UNITS[match[2]])
    try:
        day = parse_date(value)
        moment = datetime(day.year, day.month, day.day) if day else parse_datetime(value)  # noqa: DTZ001
    except ValueError:
        moment = None
    if moment is None:
        raise Nonsense("enter a date or a duration, such as 2026-01-31, 2026-01-31T12:00 or 2h")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _text(value: str) -> str:
    if not value:
        raise Nonsense("enter the beginning of the text")
    return value


def _address(value: str) -> str:
    if not value:
        raise Nonsense("enter a contact")
    return value.lower()


# what people type → the field of `Filters`, and how it is read
QUALIFIERS: dict[str, tuple[str, Reader]] = {
    "state": ("state", _one_of("state", lambda: TaskState.values)),
    "is": ("trouble", _one_of("trouble", lambda: TROUBLE)),
    "workflow": ("workflow", _one_of("workflow", lambda: registry.workflows)),
    "step": (
        "step",
        _one_of("step", lambda: (s.name for w in registry.workflows.values() for s in w.steps)),
    ),
    "agent": ("agent", _one_of("agent", lambda: registry.agents)),
    "error": ("error", _text),
    "attempts": ("attempts", _comparison),
    "value": ("value", _amount),
    "after": ("since", _moment),
    "before": ("until", _moment),
    "reference": ("reference", _text),
    "contact": ("contact", _address),
    "alert": ("alert", _number),
    "incident": ("incident", _number),
    "with": ("besides", _one_of("kind of tasks", lambda: (BACKGROUND,))),
}


def as_uuid(word: str) -> UUID | None:
    """Return the id that a word is, if it is one."""
    try:
        return UUID(word)
    except ValueError:
        return None
