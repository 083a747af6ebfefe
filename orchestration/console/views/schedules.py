"""The schedules: when tasks are submitted by the calendar; pausing, resuming and running one now."""

from typing import Any
from urllib.parse import urlencode

from django.db import transaction
from django.forms import Form
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from ...applications import by_hand
from ...database import sql
from ...models import Schedule
from ...payloads.placeholders import Unresolved
from ...registry import NotRegistered
from ...schedules import acts
from ..forms.actions import ReasonForm
from ..forms.start import StartForm
from ..queries import schedules as queries
from ..queries.schedules import STATES, Filters
from .live import live
from .permissions import HOLD, OPERATE, START, requires, user_of
from .responses import act_page, conflict, done, or_404


def filters_of(asked: QueryDict) -> Filters:
    """Return the filters that a query string names; what it cannot mean is left out."""
    state = asked.get("state", "")
    return Filters(
        workflow=sql.storable(asked.get("workflow", "")),
        state=state if state in STATES else "",
        after=sql.storable(asked.get("after", "")),
    )


@require_safe
@requires(OPERATE)
def schedules(request: HttpRequest) -> HttpResponse:
    """List schedules by name."""
    filters = filters_of(request.GET)
    narrowing = {name: getattr(filters, name) for name in ("workflow", "state")}
    user, page = user_of(request), queries.schedules(filters)
    context = {
        "now": page.now,
        "page": page,
        "filters": filters,
        "narrowing": urlencode({name: value for name, value in narrowing.items() if value}),
        "states": STATES.items(),
        "workflows": queries.workflows(),
        "may": {"hold": user.has_perm(HOLD), "start": user.has_perm(START)},
        "section": "schedules",
        "heading": "Schedules",
    }
    return live(request, "ops/schedules.html", "ops/_schedules.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, HOLD)
def pause(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Stop submitting the tasks of a schedule."""
    return _set_paused(request, schedule_id, paused=True)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, HOLD)
def resume(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Submit the tasks of a schedule again, from its next due time on."""
    return _set_paused(request, schedule_id, paused=False)


def _set_paused(request: HttpRequest, number: int, *, paused: bool) -> HttpResponse:
    row = or_404(queries.by_id(number))
    form, did = ReasonForm(request.POST or None), "paused" if paused else "resumed"
    changes = row.paused != paused
    if changes and form.is_valid():
        reason = form.cleaned_data["reason"]
        changes = acts.set_paused(row.id, paused, user=user_of(request), reason=reason)
        if changes:
            return done(request, f"The schedule {row} was {did}.", _address(row))
    if not changes:
        advice = (
            f"It is {'paused' if paused else 'not paused'} already. Your action changed nothing."
        )
        return _conflict(request, row, advice)
    heading = f"{'Pause' if paused else 'Resume'} the schedule {row}"
    words = "Pause" if paused else "Resume"
    return _form(request, row, form, heading=heading, words=words, act=words.lower())


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, START)
def run_now(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Submit a task of a schedule at once, beside its due times."""
    row = or_404(queries.by_id(schedule_id))
    reference = by_hand.new_reference(schedule=row.name)
    form = StartForm(request.POST or None, initial={"reference": reference})
    if form.is_valid():
        cleaned = form.cleaned_data
        try:
            with transaction.atomic():
                acts.run_now(
                    row,
                    cleaned["reference"],
                    actor=user_of(request).get_username(),
                    reason=cleaned["reason"],
                )
        except acts.StillGoing as going:
            advice = f"Its last task, {going}, has not ended, and it allows no overlap. Nothing was started."
            return _conflict(request, row, advice)
        except (NotRegistered, Unresolved, ValueError) as error:
            form.add_error(None, f"{str(error)[:1].upper()}{str(error)[1:].rstrip('.')}.")
        else:
            started = reverse("ops:started", args=[row.workflow, cleaned["reference"]])
            return done(request, f"A task of the schedule {row} was started.", started)
    heading = f"Run the schedule {row} now"
    return _form(request, row, form, heading=heading, words="Run now", act="run")


def _form(request: HttpRequest, row: Schedule, form: Form, **context: Any) -> HttpResponse:
    return act_page(
        request,
        "ops/schedule_act.html",
        form,
        back=_back(row),
        section="schedules",
        row=row,
        **context,
    )


def _conflict(request: HttpRequest, row: Schedule, advice: str) -> HttpResponse:
    what = f"schedule {row}"
    return conflict(
        request, what=what, first=None, advice=advice, back=_back(row), section="schedules"
    )


def _back(row: Schedule) -> tuple[str, str]:
    return _address(row), "Back to the schedules"


def _address(row: Schedule) -> str:
    return f"{reverse('ops:schedules')}#schedule-{row.name}"
