"""Typed readers of the environment: a wrong value stops the start with a sentence."""

import os

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str = "") -> str:
    """Return the variable, or `default` where it is unset or empty."""
    return os.environ.get(name, "") or default


def flag(name: str, *, default: bool) -> bool:
    """Return a yes/no variable."""
    value = text(name, str(default)).lower()
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name}={value!r} is neither yes nor no; set it to 1 or 0.")


def number(name: str, default: int) -> int:
    """Return a whole number."""
    value = text(name, str(default))
    try:
        return int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={value!r} is not a whole number.") from None


def numbers(name: str) -> dict[str, int]:
    """Return a comma-separated list of names, each with a whole number: a=1,b=2."""
    found = {}
    for word in words(name):
        key, _, value = word.partition("=")
        if not value.strip().isdecimal():
            raise ImproperlyConfigured(f"{name}: {word!r} is not a name with a whole number: a=1")
        found[key.strip()] = int(value)
    return found


def words(name: str, default: str = "") -> list[str]:
    """Return a comma-separated list."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]
