"""How the dashboard writes times, counts and data. Ages count on in the browser (`ops.js`)."""

import json
import math
import shlex
from datetime import UTC, datetime
from typing import Any

from django import template
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from ...alerting.runbook import url
from ...database.capped_counts import CAP
from ...models import AttemptEvidence
from ...payloads.money import format_money
from ...people import redaction
from ...people.redaction import Redactor, answer_text
from ...waiting.awaited import performer
from .. import alert_links
from ..cause_links import affected_address, cause_address
from ..differences import differences, facts
from ..durations import format_duration, local_time
from ..queries import exports, health
from ..queries.audit_sources import AuditEntry
from ..queries.overview import AlertView
from ..request_words import request_words

register = template.Library()
for each in (
    affected_address, cause_address, differences, facts, local_time, performer, request_words
):  # fmt: skip
    register.filter(each)

SHELL = "ops.shell"  # where a request keeps what every page shows
NOTHING = "\N{EN DASH}"


@register.filter
def runbook(fingerprint: str) -> str:
    """Return the address of the runbook's paragraph for the alert with this fingerprint."""
    return url(fingerprint, reverse("ops:runbook"))


@register.filter
def alert_address(alert: AlertView) -> str:
    """Return the address of the page that an alert is about."""
    return alert_links.alert_address(alert.fingerprint, alert.id)


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
    return _time(value, "ago", f"{_whole(_distance(context, value))} ago")


@register.simple_tag(takes_context=True)
def age(context: template.Context, value: datetime | None) -> str:
    """Write how long something has lasted: "42 s"."""
    if value is None:
        return NOTHING
    return _time(value, "age", _whole(_distance(context, value)))


@register.simple_tag(takes_context=True)
def until(context: template.Context, value: datetime) -> str:
    """Write when a moment comes: "in 42 s"; "now" once it has."""
    left = -_distance(context, value)
    return _time(value, "until", _in(left) if left > 0 else "now")


@register.simple_tag(takes_context=True)
def due(context: template.Context, value: datetime) -> str:
    """Write a deadline: "in 42 s", or "42 s ago" once it has passed."""
    left = -_distance(context, value)
    return _time(value, "due", _in(left) if left > 0 else f"{_whole(-left)} ago")


def _in(seconds: float) -> str:
    """Write what is left: rounded up, so that eight hours are not "7 h" at once."""
    return f"in {format_duration(math.ceil(seconds))}"


COUNTED = {  # what the badge of a page counts: all of it waits for a person
    "overview": "alert(s) not acknowledged",
    "tasks": "in error",
    "incidents": "in error, not acknowledged",
    "operations": "to be approved, or paused",
    "dead_letters": "failing or rejected",
    "decisions": "awaited from people",
}
CALM = ("decisions",)  # these wait without harm


@register.simple_tag(takes_context=True)
def nav_link(context: template.Context, section: str, words: str, key: str = "") -> SafeString:
    """Write the link to a page of the dashboard, with what waits there; `key` comes after a g."""
    current = mark_safe(' aria-current="page"') if context.get("section") == section else ""
    count = shell_of_page(context).counts.get(section, 0)
    badge = SafeString()
    if count:
        badge = format_html(
            ' <span class="count{}" title="{}">{}<span class="hide"> {}</span></span>',
            "" if section in CALM else " hot", COUNTED[section], capped(count), COUNTED[section],
        )  # fmt: skip
    return format_html(
        '<a id="nav-{}" href="{}" data-go="{}"{}>{}{}</a>',
        section,
        reverse(f"ops:{section}"),
        key,
        current,
        words,
        badge,
    )


@register.simple_tag(takes_context=True)
def shell_of_page(context: template.Context) -> health.Shell:
    """Return what every page shows: read once for each answer, and for operators only."""
    known = context.get("shell")
    if isinstance(known, health.Shell):
        return known
    request: HttpRequest = context["request"]
    if SHELL not in request.META:
        allowed = request.user.has_perm("orchestration.operate")
        request.META[SHELL] = health.shell() if allowed else health.Shell()
    seen: health.Shell = request.META[SHELL]
    return seen


@register.simple_tag
def address(line: AuditEntry) -> str:
    """Return the page of what an act was done to, or nothing if it has none."""
    try:
        return reverse(f"ops:{line.route}", args=[line.key]) if line.route else ""
    except NoReverseMatch:
        return ""


@register.filter
def clock(value: datetime | None) -> str:
    """Write a moment to the millisecond: for histories, where order is all. UTC unless switched."""
    if value is None:
        return NOTHING
    moment = value.astimezone(UTC)
    words = f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}"
    return _time(value, "clock", words)


@register.filter
def lasted(value: datetime | None, start: datetime | None) -> str:
    """Write how long it took from `start` to `value`."""
    return format_duration((value - start).total_seconds()) if value and start else NOTHING


@register.filter
def capped(count: int) -> str:
    """Write a count that was not taken further than the cap."""
    return f"{CAP:,}+" if count > CAP else f"{count:,}"


@register.filter
def offset(seconds: float) -> str:
    """Write how far a process's clock is from the database's, in whole seconds: it trembles."""
    if abs(seconds) < 0.5:
        return "in sync"
    return f"{format_duration(round(abs(seconds)))} {'behind' if seconds > 0 else 'ahead'}"


@register.filter
def as_json(value: Any) -> str:
    """Write stored data for reading; the template escapes it."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)


@register.filter
def money(amount: int, currency: str) -> str:
    """Write an amount in minor units: 123450 of EUR → "€1,234.50"."""
    return format_money(amount, currency)


@register.filter
def duration(seconds: float | None) -> str:
    """Write a duration in seconds: 0.25 → "250 ms", 3600 → "1 h"."""
    return NOTHING if seconds is None else format_duration(seconds)


@register.filter
def shell(value: Any) -> str:
    """Write data as one argument of a shell command."""
    return shlex.quote(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


@register.filter
def redacted(value: Any, redactor: Redactor | None) -> Any:
    """Write a text, or stored data, without what is personal, if there is a redactor."""
    return redactor(value) if redactor else value


@register.filter
def typed(value: str, perms: Any) -> str:
    """Write what a person typed: it may name whom any task is for."""
    return redaction.typed(value, personal=bool(perms["orchestration"]["see_personal"]))


@register.filter
def answer(evidence: AttemptEvidence, redactor: Redactor | None) -> str:
    """Write what a service answered to a failed attempt."""
    return answer_text(evidence.answer, cut=evidence.cut, redactor=redactor)


@register.inclusion_tag("ops/_export.html", takes_context=True)
def export(context: template.Context, name: str, narrowing: str, what: str) -> dict[str, Any]:
    """Write the form that sends a list as a file; `narrowing` is the query of its address."""
    values = {"name": name, "narrowing": narrowing, "what": what, "most": f"{exports.MOST:,}"}
    return {**values, "csrf_token": context.get("csrf_token")}


@register.simple_tag
def copyable(value: Any, what: str, address: str = "") -> SafeString:
    """Write an id or a key: shortened by the page's style where it is long, with a button to copy it."""
    code = format_html('<code title="{}">{}</code>', value, value)
    return format_html(
        '<span class="ops-copy">{}<button type="button" class="button quiet small" data-copy="{}" '
        'aria-label="Copy {}" hidden>Copy</button></span>',
        format_html('<a href="{}">{}</a>', address, code) if address else code,
        value,
        what,
    )


def _whole(seconds: float) -> str:
    return format_duration(max(0, int(seconds)))


def _distance(context: template.Context, value: datetime) -> float:
    now: datetime = context["now"]
    return (now - value).total_seconds()


@register.simple_block_tag
def table(
    content: SafeString,
    *columns: str,
    labelledby: str = "",
    label: str = "",
    caption: str = "",
    css: str = "",
) -> SafeString:
    """Write a table that scrolls by itself around the rows in this block; empty columns are left out.

    A column that begins with "#" holds numbers, with "@" times in UTC, with "-" has a hidden title.
    Rows may bring bodies of their own (`<tbody>`).
    """
    name = ("labelledby", labelledby) if labelledby else ("label", label or caption)
    return format_html(
        '<div class="scroll" tabindex="0" role="group" aria-{}="{}"><table class="table {}">{}'
        "<thead><tr>{}</tr></thead>{}</table></div>",
        *name,
        css,
        format_html("<caption>{}</caption>", caption) if caption else "",
        format_html_join("", "{}", ((_column(column),) for column in columns if column)),
        content if "<tbody" in content else format_html("<tbody>{}</tbody>", content),
    )


def _column(title: str) -> SafeString:
    match title[0]:
        case "#":
            return format_html('<th scope="col" class="num">{}</th>', title[1:])
        case "@":
            zone = mark_safe(" (<span data-zone>UTC</span>)")
            return format_html('<th scope="col">{}{}</th>', title[1:], zone)
        case "-":
            return format_html('<th scope="col"><span class="hide">{}</span></th>', title[1:])
    return format_html('<th scope="col">{}</th>', title)
