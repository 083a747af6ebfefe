"""The changes of an event, value by value."""

import json
from collections.abc import Iterable, Mapping
from typing import Any


def differences(detail: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the changes of an event: (where, before, after), value by value."""
    return list(_differences(detail.get("before"), detail.get("after"), ""))


def facts(value: Any, where: str = "") -> list[tuple[str, str]]:
    """Return the values of stored data, each with where it is."""
    if isinstance(value, Mapping):
        parts = (facts(part, f"{where}.{name}".strip(".")) for name, part in value.items())
        return [pair for part in parts for pair in part]
    return [(where, _plain(value))] if where else []


def _differences(before: Any, after: Any, where: str) -> Iterable[tuple[str, str, str]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in [*before, *(name for name in after if name not in before)]:
            inner = f"{where}.{name}".strip(".")
            yield from _differences(before.get(name), after.get(name), inner)
    elif before != after:
        yield where, _plain(before), _plain(after)


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
