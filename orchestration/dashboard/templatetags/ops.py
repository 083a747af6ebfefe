"""How the dashboard writes times, counts and data. Ages count on in the browser (`ops.js`)."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django import template
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from ...alerting.runbook import url
from ...models import Step
from ...payloads.money import format_money
from ...payloads.placeholders import KEYS, LOADED, MARK, filled
from ...queries import agent_facts, health
from ...queries.audit_log import AuditEntry
from ...queries.causes import Cause, Kind
from ...queries.overview import AlertView
from ...queries.redaction import HIDDEN, Redactor
from ...states import StepState
from .. import alert_links
from ..durations import format_duration

register = template.Library()

SHELL = "ops.shell"  # where a request keeps what every page shows
NOTHING = "\N{EN DASH}"
COMPUTED = "local (no agent)"  # instead of an agent's action


@register.filter
def runbook(fingerprint: str) -> str:
    """Return the address of the runbook's paragraph for the alert with this fingerprint."""
    return url(fingerprint, reverse("ops:runbook"))


@register.filter
def cause_address(cause: Cause) -> str:
    """Return the address of the page where a cause can be acted on."""
    match cause.kind:
        case Kind.INCIDENT:
            return reverse("ops:incident", args=[int(cause.name)])
        case Kind.AGENT:
            return reverse("ops:agents") + (f"#agent-{cause.name}" if cause.name else "")
    return affected_address(cause)


@register.filter
def affected_address(cause: Cause) -> str:
    """Return the address of the list of the tasks that a cause affects."""
    match cause.kind:
        case Kind.INCIDENT:
            return alert_links.tasks(f"incident:{cause.name}")
        case Kind.AGENT if cause.name:
            return alert_links.tasks(f"agent:{cause.name}")
        case Kind.AGENT:
            return alert_links.tasks("state:processing")
    return alert_links.tasks("is:held")


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


@register.filter
def performer(step: Any) -> str:
    """Write what performs a step: an action of an agent, or a scheduler by itself."""
    return f"{step.agent}.{step.action}" if step.agent else COMPUTED


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
    return _time(value, "until", f"in {_whole(left)}" if left >= 1 else "now")


COUNTED = {  # what the badge of a page counts: all of it waits for a person
    "overview": "alerts not acknowledged",
    "tasks": "in error",
    "incidents": "in error, not acknowledged",
    "operations": "to be approved, or paused",
    "dead_letters": "failing or rejected",
}


@register.simple_tag(takes_context=True)
def nav_link(context: template.Context, section: str, words: str, key: str = "") -> SafeString:
    """Write the link to a page of the dashboard, with what waits there; `key` comes after a g."""
    current = mark_safe(' aria-current="page"') if context.get("section") == section else ""
    count = shell_of_page(context).counts.get(section, 0)
    badge = (
        format_html(
            ' <span class="count hot" title="{}">{}<span class="hide"> {}</span></span>',
            COUNTED[section], capped(count), COUNTED[section],
        )
        if count
        else ""
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
    return f"{agent_facts.CAP:,}+" if count > agent_facts.CAP else f"{count:,}"


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
def differences(detail: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what an event changed: (where, before, after), value by value."""
    return list(_differences(detail.get("before"), detail.get("after"), ""))


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


def template_words(value: Any) -> Any:
    """Return a request that is a template still, with words for what will be put in."""
    if isinstance(value, Mapping):
        if value.keys() != {MARK}:
            return {name: template_words(part) for name, part in value.items()}
        origin, *path = value[MARK]
        if origin == KEYS:
            return f"«the idempotency key of {path[0]}»"
        if origin == LOADED:
            return loaded_words(path)
        return (
            f"«{'.'.join(path) or 'all'} of {f'the result of {origin}' if origin else 'the input'}»"
        )
    if isinstance(value, list):
        return [template_words(part) for part in value]
    return value


@register.filter
def request_words(step: Step) -> Any:
    """Return what a step's agent is sent, with words for what is loaded when it is."""
    loads = step.loads or ()
    if step.process_state == StepState.WAITING:
        return template_words(step.request)
    return filled(step.request, loads, [loaded_words(path) for _, path in loads])


def loaded_words(path: Sequence[str]) -> str:
    """Return words for what the workflow loads."""
    return f"«{'.'.join(path) or 'all'}, loaded on dispatch»"


@register.filter
def redacted(value: Any, redactor: Redactor | None) -> Any:
    """Write a text, or stored data, without what is personal, if there is a redactor."""
    return redactor(value) if redactor else value


@register.filter
def typed(value: str, perms: Any) -> str:
    """Write what a person typed about no one task: it may name whom a task is for."""
    return value if not value or perms["orchestration"]["see_personal"] else HIDDEN


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
