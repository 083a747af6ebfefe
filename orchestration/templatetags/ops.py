"""How the dashboard writes times, counts and data. Ages count on in the browser (`ops.js`)."""

import json
from datetime import UTC, datetime
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from ..queries import CAP
from ..redaction import Veil

register = template.Library()

NOTHING = "\N{EN DASH}"


def spell(seconds: float) -> str:
    """Return a length of time in a word or two; `ops.js` says the same."""
    whole = int(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min"
    if whole < 172_800:
        return f"{whole // 3600} h"
    return f"{whole // 86_400} d"


def _time(value: datetime, kind: str, words: str) -> SafeString:
    moment = value.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{}" data-{}>{}</time>',
        moment.isoformat(timespec="milliseconds"),
        f"{moment:%Y-%m-%d %H:%M:%S} UTC",
        kind,
        words,
    )


@register.simple_tag(takes_context=True)
def ago(context: template.Context, value: datetime | None) -> str:
    """Write how long ago a moment was: "42 s ago"."""
    if value is None:
        return NOTHING
    return _time(value, "ago", f"{spell(max(0.0, _distance(context, value)))} ago")


@register.simple_tag(takes_context=True)
def age(context: template.Context, value: datetime | None) -> str:
    """Write how long something has lasted: "42 s"."""
    if value is None:
        return NOTHING
    return _time(value, "age", spell(max(0.0, _distance(context, value))))


@register.simple_tag(takes_context=True)
def until(context: template.Context, value: datetime) -> str:
    """Write when a moment comes: "in 42 s"; "now" once it has."""
    left = -_distance(context, value)
    return _time(value, "until", f"in {spell(left)}" if left >= 1 else "now")


@register.simple_tag(takes_context=True)
def nav_link(context: template.Context, section: str, words: str) -> SafeString:
    """Write the link to a page of the dashboard; marked on the pages of its section."""
    current = mark_safe(' aria-current="page"') if context.get("section") == section else ""
    return format_html('<a href="{}"{}>{}</a>', reverse(f"ops:{section}"), current, words)


@register.filter
def clock(value: datetime | None) -> str:
    """Write a moment to the millisecond, UTC: for histories, where order is all."""
    if value is None:
        return NOTHING
    moment = value.astimezone(UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}"


@register.filter
def lasted(value: datetime | None, start: datetime | None) -> str:
    """Write how long it took from `start` to `value`, in seconds."""
    return f"{(value - start).total_seconds():.3f} s" if value and start else NOTHING


@register.filter
def capped(count: int) -> str:
    """Write a count that was not taken further than the cap."""
    return f"{CAP:,}+" if count > CAP else f"{count:,}"


@register.filter
def offset(seconds: float) -> str:
    """Write how far a process's clock is from the database's; coarse, as it trembles."""
    if abs(seconds) < 0.5:
        return "right"
    return f"{abs(seconds):,.0f} s {'behind' if seconds > 0 else 'ahead'}"


@register.filter
def as_json(value: Any) -> str:
    """Write stored data for reading; the template escapes it."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)


@register.filter
def veiled(value: Any, veil: Veil | None) -> Any:
    """Write a text, or stored data, without what is personal, if there is a veil."""
    return veil(value) if veil else value


def _distance(context: template.Context, value: datetime) -> float:
    now: datetime = context["now"]
    return (now - value).total_seconds()
