"""How large and how deep a payload may be, and how long what people see of a task."""

from collections.abc import Mapping
from typing import Any

from .text import as_text

LONGEST_LABEL, LONGEST_CONTACT, LONGEST_CURRENCY = 100, 254, 10  # characters
MAX_BYTES = 262_144  # a request or reply beyond this is a mistake, not a payload
MAX_KEPT = 4_194_304  # bytes of an input or a result: each reader has it in memory, many at once
MAX_PAYLOAD = MAX_BYTES - 8_192  # of a request's own part: leaves room for the rest of the message
# nested objects and lists, at every door; Python and the database fail at some thousand
DEEPEST = 100
TOO_DEEP = f"nested deeper than {DEEPEST} levels"


def is_too_deep(text: str, data: Any) -> bool:
    """Return whether `data`, whose JSON is `text`, is too deep; it is walked only if that can be."""
    return text.count("{") + text.count("[") > DEEPEST and is_deep(data)


def is_deep(data: Any, levels: int = DEEPEST) -> bool:
    """Return whether objects and lists are nested deeper than `levels`: by default, than is stored."""
    level: list[Any] = [data]
    for _ in range(levels + 1):
        level = [part for part in level if isinstance(part, dict | list)]
        if not level:
            return False
        level = [
            part
            for container in level
            for part in (container.values() if isinstance(container, dict) else container)
        ]
    return True


def why_not_kept(text: str, data: Any) -> str:
    """Return why `data`, whose JSON is `text`, is too large or too deep to be kept; empty if it is not."""
    if (size := len(text)) > MAX_KEPT and (size := len(text.encode())) > MAX_KEPT:
        return f"it has {size:,} bytes; at most {MAX_KEPT:,} are kept"
    return f"it is {TOO_DEEP}" if is_too_deep(text, data) else ""


def why_not_sent(payload: Mapping[str, Any]) -> str:
    """Return why a request with this payload would be refused on arrival; empty if it would not."""
    text = as_text(payload)
    size = len(text.encode())
    if size > MAX_PAYLOAD:
        return f"it has {size:,} bytes; at most {MAX_PAYLOAD:,} are sent"
    return f"it is {TOO_DEEP}" if is_too_deep(text, [payload]) else ""
