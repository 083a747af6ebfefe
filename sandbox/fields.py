"""Validation of a request's fields; an invalid one is a 400 that names it."""

from collections.abc import Mapping
from typing import Any

from sandbox.refusals import bad_field


def text(params: Mapping[str, Any], field: str) -> str:
    """Return a required, non-empty string."""
    value = params.get(field)
    if not isinstance(value, str) or not value:
        raise bad_field(field, f"'{field}' must be a non-empty string, but it is {value!r}.")
    return value


def optional_text(params: Mapping[str, Any], field: str) -> str | None:
    """Return a string or None when the field is absent or null."""
    value = params.get(field)
    if value is not None and not isinstance(value, str):
        raise bad_field(field, f"'{field}' must be a string if it is given, but it is {value!r}.")
    return value


def whole(value: object, field: str, *, least: int) -> int:
    """Return `value` if it is a whole number of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise bad_field(
            field, f"'{field}' must be a whole number of at least {least}, but it is {value!r}."
        )
    return value
