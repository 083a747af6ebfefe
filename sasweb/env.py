"""Typed readers of the environment: a wrong value stops the start with a sentence.

Each variable NAME may be given by a file instead, as orchestrators mount secrets: NAME_FILE is its path.
"""

import os
from pathlib import Path
from zoneinfo import ZoneInfo

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str = "") -> str:
    """Return the variable, or what its file holds; `default` where neither is given."""
    value, file = os.environ.get(name, ""), os.environ.get(f"{name}_FILE", "")
    if value and file:
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set; keep one of them.")
    return value or (_content(f"{name}_FILE", file) if file else default)


def _content(name: str, file: str) -> str:
    """Return a file's content without a trailing newline."""
    try:
        content = Path(file).read_text().rstrip("\r\n")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ImproperlyConfigured(f"{name}={file!r} cannot be read: {why}.") from None
    if not content:
        raise ImproperlyConfigured(f"{name}={file!r} is empty.")
    return content


def flag(name: str, *, default: bool) -> bool:
    """Return a yes/no variable."""
    value = text(name, str(default)).lower()
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name}={value!r} is neither yes nor no; set it to 1 or 0.")


def number(name: str, default: int, *, least: int | None = None) -> int:
    """Return a whole number, not below `least`."""
    value = text(name, str(default))
    try:
        whole = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={value!r} is not a whole number.") from None
    if least is not None and whole < least:
        raise ImproperlyConfigured(f"{name} is at least {least}.")
    return whole


def zone(name: str, default: str) -> str:
    """Return the name of a time zone."""
    value = text(name, default)
    try:
        ZoneInfo(value)
    except (ValueError, LookupError, OSError):
        raise ImproperlyConfigured(
            f"{name}={value!r} is not a time zone, as Europe/Berlin is."
        ) from None
    return value


def currency(name: str, default: str) -> str:
    """Return the code of a currency by ISO 4217."""
    value = text(name, default).upper()
    if not (len(value) == 3 and value.isascii() and value.isalpha()):
        raise ImproperlyConfigured(f"{name}={value!r} is not the code of a currency, as EUR is.")
    return value


def numbers(name: str) -> dict[str, int]:
    """Return a comma-separated list of names, each with a whole number: a=1,b=2."""
    values = {}
    for word in words(name):
        key, _, value = word.partition("=")
        if not value.strip().isdecimal():
            raise ImproperlyConfigured(f"{name}: {word!r} is not a name with a whole number: a=1")
        values[key.strip()] = int(value)
    return values


def words(name: str, default: str = "") -> list[str]:
    """Return a comma-separated list."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]
