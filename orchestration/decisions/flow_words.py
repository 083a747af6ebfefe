"""Conditions of steps, and what follows their refusals, in words for people."""

import json
from collections.abc import Mapping
from typing import Any

from msgspec import ValidationError, convert

from ..payloads.placeholders import DONE, EACH, FIRST, ITEM, KEYS, LOADED, MARK, NOT, PASSED
from ..states import OnRejection, Outcome
from .flow import ANY, LATE, PASS, Flow

FOLLOWS = {
    PASS: "is passed over",
    OnRejection.ERROR: "is an error, for a person",
    OnRejection.WAIT: "waits for a fix, then undoes the task",
    OnRejection.UNDO: "undoes the task",
}
HOLDS = (NOT, PASSED, DONE)  # stand for true or false


def stored(value: Any) -> Flow | None:
    """Read what is stored with a step; None for a plain step, or what cannot be read."""
    try:
        return convert(value, Flow) if value else None
    except ValidationError:
        return None


def condition(flow: Flow | None) -> str:
    """Return the condition of a step in words, such as "sort.ships"; empty if it has none."""
    return "" if flow is None or flow.when is True else template_words(flow.when)


def refusals(flow: Flow | None) -> str:
    """Return what follows the refusals of a step, by code, in words; empty where its policy says all."""
    refused = flow.refused if flow else {}
    others = "any other" if len(refused) > 1 else "any refusal"
    return "; ".join(
        f"{others if code == ANY else code} {FOLLOWS.get(refused[code], refused[code])}"
        for code in sorted(refused, key=lambda code: code == ANY)
    )


def why_skipped(flow: Flow | None, outcome: str, code: str) -> str:
    """Return why a step was skipped, by how its last attempt ended, if there was one."""
    if outcome == Outcome.REJECTED:
        return f"not needed: refused{f' with {code}' if code else ''}, and passed over"
    if code == LATE:
        return "not needed: no result came in time, and the task goes on"
    if words := condition(flow):
        return f"not needed: its condition does not hold ({words})"
    return "not needed"


def template_words(template: Any) -> str:
    """Return what a template stands for: "sort.ships", "a is passed over (not_served)", "not input.gift"."""
    if isinstance(template, list):
        return f"[{', '.join(map(template_words, template))}]"
    if not isinstance(template, Mapping):
        return json.dumps(template, ensure_ascii=False)
    if len(template) == 1 and (words := _placeholder(*next(iter(template.items())))):
        return words
    parts = (f"{name}: {template_words(part)}" for name, part in template.items())
    return f"{{{', '.join(parts)}}}"


def _placeholder(name: str, content: Any) -> str:
    """Return what a placeholder stands for; empty if the name is that of a field."""
    if name == MARK:
        return _value(*content)
    if name == EACH:
        items, template = content
        return f"{template_words(template)} for each of {template_words(items)}"
    if name == FIRST:
        return " or else ".join(map(template_words, content))
    return _holds(name, content, so=True) if name in HOLDS else ""


def _value(origin: str, *path: str) -> str:
    if origin == KEYS:
        return f"the key of {'.'.join(path)}"
    return ".".join([{"": "input", LOADED: "loaded", ITEM: "item"}.get(origin, origin), *path])


def _holds(name: str, content: Any, *, so: bool) -> str:
    """Return what holds, or, unless `so`, that it does not."""
    be = "is" if so else "is not"
    if name == DONE:
        return f"{content[0]} {be} done"
    if name == PASSED:
        step, *codes = content
        return f"{step} {be} passed over" + (f" ({' or '.join(codes)})" if codes else "")
    if isinstance(content, Mapping) and len(content) == 1:
        ((inner, of),) = content.items()
        if inner in HOLDS:
            return _holds(inner, of, so=not so)
    words = template_words(content)
    if so:
        return f"not ({words})" if " " in words else f"not {words}"
    return words
