"""Incidents: their list, and the page of one with what can be done about it."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from .. import incidents, operations, queries, redaction
from ..incident_forms import Assign, Finder, Mute, Note, Seen
from ..models import Incident
from .access import ACKNOWLEDGE, BULK, MUTE, OPERATE, RESUBMIT, is_veiled, requires, user_of
from .live import live
from .outcome import conflict, done
from .sparkline import hours, sparkline

# addresses of the list that people want every day, and their words
VIEWS = (
    ("", "Open"), ("mine=on", "Mine"), ("state=returned", "Returned"),
    ("state=muted", "Muted"), ("state=resolved&sort=last", "Resolved"), ("state=all", "All"),
)  # fmt: skip


@require_safe
@requires(OPERATE)
def incident_list(request: HttpRequest) -> HttpResponse:
    """List incidents, those that hurt most first, narrowed by what the address says."""
    form = Finder(request.GET, user=user_of(request))
    filters = form.filters()
    page = queries.incidents(filters) if filters else None
    narrowing = request.GET.copy()
    for name in ("seen", "after"):
        narrowing.pop(name, None)
    views = [(query, words, query == narrowing.urlencode()) for query, words in VIEWS]
    context = {
        "now": page.now if page else None,
        "form": form,
        "views": views,
        "narrowed": bool(narrowing) and not any(current for *_, current in views),
        "page": page,
        "rows": [(row, sparkline(row.trend, page.now)) for row in page.rows] if page else [],
        "later": bool(filters and filters.after),
        "narrowing": narrowing.urlencode(),
        "next": _place(page.last, by_last=filters.by_last) if page and filters else "",
        "veiled": is_veiled(request),
        "section": "incidents",
    }
    return live(
        request, "ops/incidents.html", "ops/_incidents.html", context, status=200 if page else 400
    )


def _place(last: Incident | None, *, by_last: bool) -> str:
    if last is None:
        return ""
    value = last.last_seen.isoformat() if by_last else last.suffering
    return urlencode({"after": f"{value}~{last.id}"})


@require_safe
@requires(OPERATE)
def incident(request: HttpRequest, incident_id: int) -> HttpResponse:
    """Show one incident: its cause, who is hit, what can be done, what was done and came of it."""
    return _page(request, incident_id)


def _page(request: HttpRequest, incident_id: int, failed: forms.Form | None = None) -> HttpResponse:
    ever = request.GET.get("who") == "ever"
    before = request.GET.get("before", "")
    detail = queries.incident_detail(
        incident_id,
        ever=ever,
        before=int(before) if before.isdecimal() and len(before) < 19 else None,
    )
    if detail is None:
        raise Http404
    user = user_of(request)
    people = queries.assignable() if user.has_perm(ACKNOWLEDGE) else []
    veils = redaction.veils(step.task for step in detail.samples) if is_veiled(request) else {}
    seen = {"seen": detail.seen}
    assign = Assign(
        initial={**seen, "to": detail.incident.assignee_id}, people=people, auto_id="assign_%s"
    )
    context = {
        "now": detail.now,
        "detail": detail,
        "incident": detail.incident,
        "spark": sparkline(detail.trend, detail.now),
        "hours": hours(detail.trend, detail.now),
        "samples": [(step, veils.get(step.task_id)) for step in detail.samples],
        # only the words of one task could be taken out of it, and what is left of them would stay
        "veiled": is_veiled(request),
        "operations": [
            (one, operations.sentence(one.act, one.counts)) for one in detail.operations
        ],
        "ever": ever,
        "later": bool(before),
        "may": {
            "handle": user.has_perm(ACKNOWLEDGE),
            "mute": user.has_perm(MUTE),
            "resubmit": user.has_perm(RESUBMIT),
            "retry": user.has_perms([RESUBMIT, BULK]),
        },
        "note_form": failed if isinstance(failed, Note) else Note(auto_id="note_%s"),
        "assign_form": failed if isinstance(failed, Assign) else assign,
        "mute_form": failed if isinstance(failed, Mute) else Mute(initial=seen, auto_id="mute_%s"),
        "failed": failed,
        "section": "incidents",
    }
    return live(
        request,
        "ops/incident.html",
        "ops/_incident.html",
        context,
        address=reverse("ops:incident", args=[incident_id]),
        status=422 if failed else 200,
    )


@require_POST
@requires(OPERATE, ACKNOWLEDGE)
def acknowledge_incident(request: HttpRequest, incident_id: int) -> HttpResponse:
    """Record that somebody takes care of an incident."""

    def act(form: Seen, by: str) -> str:
        incidents.acknowledge(incident_id, seen=form.cleaned_data["seen"], by=by)
        return "You take care of it, and the others see that."

    return _act(request, incident_id, Seen(request.POST), act)


@require_POST
@requires(OPERATE, ACKNOWLEDGE)
def assign_incident(request: HttpRequest, incident_id: int) -> HttpResponse:
    """Have somebody see to an incident."""

    def act(form: Assign, by: str) -> str:
        to = form.cleaned_data["to"]
        incidents.assign(incident_id, seen=form.cleaned_data["seen"], by=by, to=to)
        return f"{to.get_username()} sees to it." if to else "Nobody sees to it any more."

    form = Assign(request.POST, people=queries.assignable(), auto_id="assign_%s")
    return _act(request, incident_id, form, act)


@require_POST
@requires(OPERATE, ACKNOWLEDGE)
def note_incident(request: HttpRequest, incident_id: int) -> HttpResponse:
    """Keep a note about an incident."""

    def act(form: Note, by: str) -> str:
        incidents.note(incident_id, by=by, text=form.cleaned_data["text"])
        return "Your note is kept."

    return _act(request, incident_id, Note(request.POST, auto_id="note_%s"), act)


@require_POST
@requires(OPERATE, MUTE)
def mute_incident(request: HttpRequest, incident_id: int) -> HttpResponse:
    """Tell nobody of an incident."""

    def act(form: Mute, by: str) -> str:
        given = form.cleaned_data
        incidents.mute(
            incident_id, seen=given["seen"], by=by, reason=given["reason"], hours=form.length
        )
        return "It is muted: counted, and nobody is told."

    return _act(request, incident_id, Mute(request.POST, auto_id="mute_%s"), act)


@require_POST
@requires(OPERATE, MUTE)
def unmute_incident(request: HttpRequest, incident_id: int) -> HttpResponse:
    """Let people be told of an incident again."""

    def act(form: Seen, by: str) -> str:
        incidents.unmute(incident_id, seen=form.cleaned_data["seen"], by=by)
        return "It is not muted any more."

    return _act(request, incident_id, Seen(request.POST), act)


@require_POST
@requires(OPERATE, ACKNOWLEDGE)
def resolve_incident(request: HttpRequest, incident_id: int) -> HttpResponse:
    """Record that an incident is over."""

    def act(form: Seen, by: str) -> str:
        incidents.resolve(incident_id, seen=form.cleaned_data["seen"], by=by)
        return "It is resolved. If it strikes again, it is shown as returned."

    return _act(request, incident_id, Seen(request.POST), act)


def _act(
    request: HttpRequest, incident_id: int, form: Any, act: Callable[[Any, str], str]
) -> HttpResponse:
    found = queries.incident_by_id(incident_id)
    if found is None:
        raise Http404
    if not form.is_valid():
        return _page(request, incident_id, failed=form)
    back = reverse("ops:incident", args=[incident_id])
    try:
        sentence = act(form, user_of(request).get_username())
    except incidents.Conflict as late:
        return conflict(
            request,
            what=f"the incident “{found.title}”",
            first=queries.who_was_first(late.event),
            advice="Look at it as it is now, then decide anew." if late.event else f"{late.why}.",
            back=(back, "Back to the incident"),
            section="incidents",
        )
    return done(request, sentence, back)
