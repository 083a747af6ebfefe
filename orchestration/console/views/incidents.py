"""Incidents: their list, and the page of one with what can be done about it."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from ...incidents import actions
from ...models import Incident
from ...operations import summary
from ..charts.sparkline import by_hour, hours
from ..forms.incidents import Assign, Finder, Mute, Note, Seen
from ..queries import incidents as incidents_queries
from ..queries.incidents import (
    IncidentDetail,
    action_on_incident,
    assignable,
    incident_by_id,
    incident_detail,
)
from .live import live
from .permissions import (
    ACKNOWLEDGE,
    BULK,
    MUTE,
    OPERATE,
    RESUBMIT,
    is_redacted,
    redactors_for,
    requires,
    user_of,
)
from .replica import from_replica
from .responses import conflict, done, or_404

# addresses of the list that people want every day, and their words
VIEWS = (
    ("", "Open"), ("mine=on", "Mine"), ("state=returned", "Returned"),
    ("state=muted", "Muted"), ("state=resolved&sort=last", "Resolved"), ("state=all", "All"),
)  # fmt: skip


@require_safe
@requires(OPERATE)
@from_replica
def incident_list(request: HttpRequest) -> HttpResponse:
    """List incidents, most affected tasks first, filtered by the query string."""
    form = Finder(request.GET, user=user_of(request))
    filters = form.filters()
    page = incidents_queries.incidents(filters) if filters else None
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
        "rows": [(row, by_hour(row.trend, page.now)) for row in page.rows] if page else [],
        "later": bool(filters and filters.after),
        "narrowing": narrowing.urlencode(),
        "next": _place(page.last, by_last=filters.by_last) if page and filters else "",
        "redacted": is_redacted(request),
        "section": "incidents",
        "heading": "Incidents",
    }
    return live(
        request, "ops/incidents.html", "ops/_incidents.html", context, status=200 if page else 400
    )


def _place(last: Incident | None, *, by_last: bool) -> str:
    if last is None:
        return ""
    value = last.last_seen.isoformat() if by_last else last.open_tasks
    return urlencode({"after": f"{value}~{last.id}"})


@require_safe
@requires(OPERATE)
def incident(request: HttpRequest, incident_id: int) -> HttpResponse:
    """Show one incident: its cause, who is hit, what can be done, what was done and came of it."""
    return _page(request, incident_id)


def _forms(
    request: HttpRequest, detail: IncidentDetail, failed: forms.Form | None
) -> dict[str, Any]:
    """Return what the user may do with an incident, and the forms for it."""
    user = user_of(request)
    people = assignable() if user.has_perm(ACKNOWLEDGE) else []
    seen = {"seen": detail.seen}
    assign = Assign(
        initial={**seen, "to": detail.incident.assignee_id}, people=people, auto_id="assign_%s"
    )
    return {
        "may": {
            "handle": user.has_perm(ACKNOWLEDGE),
            "mute": user.has_perm(MUTE),
            "resubmit": user.has_perm(RESUBMIT),
            "retry": user.has_perms([RESUBMIT, BULK]),
        },
        "note_form": failed if isinstance(failed, Note) else Note(auto_id="note_%s"),
        "assign_form": failed if isinstance(failed, Assign) else assign,
        "mute_form": failed if isinstance(failed, Mute) else Mute(initial=seen, auto_id="mute_%s"),
    }


def _page(request: HttpRequest, incident_id: int, failed: forms.Form | None = None) -> HttpResponse:
    ever = request.GET.get("who") == "ever"
    before = request.GET.get("before", "")
    detail = or_404(
        incident_detail(
            incident_id,
            ever=ever,
            before=int(before) if before.isdecimal() and len(before) < 19 else None,
        )
    )
    redactors = redactors_for(request, (step.task for step in detail.samples))
    context = {
        "now": detail.now,
        "detail": detail,
        "incident": detail.incident,
        "spark": by_hour(detail.trend, detail.now),
        "hours": hours(detail.trend, detail.now),
        "samples": [(step, redactors.get(step.task_id)) for step in detail.samples],
        # only the words of one task could be taken out of it, and what is left of them would stay
        "redacted": is_redacted(request),
        "operations": [
            (operation, summary.sentence(operation.act, operation.counts))
            for operation in detail.operations
        ],
        "ever": ever,
        "later": bool(before),
        **_forms(request, detail, failed),
        "failed": failed,
        "section": "incidents",
        "heading": detail.incident.title,
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
    """Acknowledge an incident."""

    def act(form: Seen, by: str) -> str:
        actions.acknowledge(incident_id, seen=form.cleaned_data["seen"], by=by)
        return "You acknowledged the incident."

    return _act(request, incident_id, Seen(request.POST), act)


@require_POST
@requires(OPERATE, ACKNOWLEDGE)
def assign_incident(request: HttpRequest, incident_id: int) -> HttpResponse:
    """Assign an incident to a user."""

    def act(form: Assign, by: str) -> str:
        to = form.cleaned_data["to"]
        actions.assign(incident_id, seen=form.cleaned_data["seen"], by=by, to=to)
        return (
            f"The incident was assigned to {to.get_username()}."
            if to
            else "The assignee was removed."
        )

    form = Assign(request.POST, people=assignable(), auto_id="assign_%s")
    return _act(request, incident_id, form, act)


@require_POST
@requires(OPERATE, ACKNOWLEDGE)
def note_incident(request: HttpRequest, incident_id: int) -> HttpResponse:
    """Keep a note about an incident."""

    def act(form: Note, by: str) -> str:
        actions.note(incident_id, by=by, text=form.cleaned_data["text"])
        return "The note was saved."

    return _act(request, incident_id, Note(request.POST, auto_id="note_%s"), act)


@require_POST
@requires(OPERATE, MUTE)
def mute_incident(request: HttpRequest, incident_id: int) -> HttpResponse:
    """Mute the notifications of an incident."""

    def act(form: Mute, by: str) -> str:
        cleaned = form.cleaned_data
        actions.mute(
            incident_id, seen=cleaned["seen"], by=by, reason=cleaned["reason"], hours=form.length
        )
        return "The incident is muted: failures are counted, and no alerts are sent."

    return _act(request, incident_id, Mute(request.POST, auto_id="mute_%s"), act)


@require_POST
@requires(OPERATE, MUTE)
def unmute_incident(request: HttpRequest, incident_id: int) -> HttpResponse:
    """Unmute the notifications of an incident."""

    def act(form: Seen, by: str) -> str:
        actions.unmute(incident_id, seen=form.cleaned_data["seen"], by=by)
        return "The incident is no longer muted."

    return _act(request, incident_id, Seen(request.POST), act)


@require_POST
@requires(OPERATE, ACKNOWLEDGE)
def resolve_incident(request: HttpRequest, incident_id: int) -> HttpResponse:
    """Record that an incident is over."""

    def act(form: Seen, by: str) -> str:
        actions.resolve(incident_id, seen=form.cleaned_data["seen"], by=by)
        return "The incident is resolved. If it fails again, its state becomes returned."

    return _act(request, incident_id, Seen(request.POST), act)


def _act(
    request: HttpRequest, incident_id: int, form: Any, act: Callable[[Any, str], str]
) -> HttpResponse:
    incident = or_404(incident_by_id(incident_id))
    if not form.is_valid():
        return _page(request, incident_id, failed=form)
    back = reverse("ops:incident", args=[incident_id])
    try:
        sentence = act(form, user_of(request).get_username())
    except actions.Conflict as late:
        return conflict(
            request,
            what=f"the incident “{incident.title}”",
            first=action_on_incident(late.event),
            advice="Check its present state, then decide again." if late.event else f"{late.why}.",
            back=(back, "Back to the incident"),
            section="incidents",
        )
    return done(request, sentence, back)
