"""Checks of the fields of a message, which are untrusted."""

from collections.abc import Mapping, Sequence
from typing import Any

MAX_LENGTH = {  # characters
    "email": 254,
    "name": 100,
    "street": 120,
    "postcode": 20,
    "city": 80,
    "region": 80,
    "country": 2,
    "sku": 40,
    "product": 120,
    "code": 30,
    "subject": 200,
    "text": 10_000,
    "html": 20_000,
}


class Malformed(ValueError):
    """The message is not a valid order; the text gives the reason."""


class NewerFormat(ValueError):
    """The message has content unknown to this release; a newer release can process it."""


def check_fields(value: Any, what: str, names: str, *, optional: str = "") -> None:
    """Raise unless `value` is an object with these fields, and perhaps the optional ones."""
    if not isinstance(value, Mapping):
        raise Malformed(f"{what} is not an object")
    required = set(names.split())
    if extra := value.keys() - required - set(optional.split()):
        raise NewerFormat(f"{what} has fields unknown to this release: {', '.join(sorted(extra))}")
    if missing := required - value.keys():
        raise Malformed(f"{what} lacks {', '.join(sorted(missing))}")


def one_of(known: Sequence[str], value: Any, what: str) -> str:
    """Return a value that this release knows."""
    if not isinstance(value, str):
        raise Malformed(f"{what} is {value!r}")
    if value not in known:
        raise NewerFormat(f"{what} {value!r} is unknown to this release")
    return value


def text(value: Any, name: str) -> str:
    """Return a text that is not empty, and not longer than its name allows."""
    longest = MAX_LENGTH[name]
    if not isinstance(value, str) or not value.strip():
        raise Malformed(f"{name} is empty or not a string")
    if len(value) > longest or "\0" in value:
        raise Malformed(f"{name} is longer than {longest} characters, or not printable")
    return value


def integer(value: Any, name: str, *, most: int, least: int = 1) -> int:
    """Return a whole number within bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Malformed(f"{name} is {value!r}; it must be a whole number from {least} to {most}")
    return value
