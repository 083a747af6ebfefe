"""The one way to write a duration: "250 ms", "1.2 s", "4 min 38 s", "19 min", "2 h 5 min", "3 d 4 h"."""

from datetime import datetime
from typing import Any

from ..decisions.flow_words import template_words

UNITS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def format_duration(seconds: float) -> str:
    """Return a duration in its largest unit, with the next one below ten; `ops.js` does the same."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.0005 else "0 s"
    tenths = round(seconds, 1)
    if tenths < 60:
        return f"{tenths:.1f}".removesuffix(".0") + " s"
    whole = int(tenths)
    large, name, small, rest_name = next(unit for unit in UNITS if whole >= unit[0])
    count, rest = whole // large, whole % large // small
    return f"{count:,} {name}" + (f" {rest} {rest_name}" if rest and count < 10 else "")


def declared_time(value: Any) -> str:
    """Return what a step declares of a time: a duration, or what a template stands for; empty for none."""
    if value is None:
        return ""
    return format_duration(value) if isinstance(value, int | float) else template_words(value)


def local_time(moment: datetime | None) -> str:
    """Return a moment as clocks of its own time zone show it: "Sun 29 Mar 2026, 03:00 CEST"."""
    if moment is None:
        return "\N{EN DASH}"
    seconds = ":%S" if moment.second else ""
    return f"{moment:%a %d %b %Y, %H:%M{seconds} %Z}"
