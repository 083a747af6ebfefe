"""A row of a table of failed steps: as it is, with its form open, and with what an act did.

One partial draws it on its page, and alone when htmx puts it in the place of the one that was there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.messages import get_messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from ...database import clock
from ...decisions.recovery import KEY_FORGOTTEN
from ...models import Step
from ..forms.search import Resubmission
from ..queries import decisions, incidents, search_query, task, task_list
from ..task_table import columns_of
from .in_place import htmx
from .permissions import (
    BULK,
    CORRECT,
    OPERATE,
    RESUBMIT,
    SEE_PERSONAL,
    is_redacted,
    redactor_for,
    requires,
    user_of,
)
from .responses import or_404
from .task import task_page


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table with rows of failed steps: the partial of a row, and what that shows of a step."""

    part: str
    section: str
    shows: Callable[[HttpRequest, Step], dict[str, Any]]


def _failed(request: HttpRequest, step: Step) -> dict[str, Any]:
    return {"step": step, "redacted": is_redacted(request)}


def _task(request: HttpRequest, step: Step) -> dict[str, Any]:
    personal = user_of(request).has_perm(SEE_PERSONAL)
    search = search_query.read({"columns": request.GET.get("columns", "")}, personal=personal)
    return {
        "row": task_list.task_row(step.task_id, personal=personal),
        "columns": columns_of(search, None),
        "columns_text": search_query.columns_text(search.columns, personal=personal),
    }


def _hit(request: HttpRequest, step: Step) -> dict[str, Any]:
    incident = request.GET.get("incident", "")
    if not incident.isdecimal() or len(incident) > 18:
        raise Http404
    hit = incidents.hit_of(int(incident), step.id)
    return {"step": step, "hit": hit, "incident_id": int(incident)}


def _decision(request: HttpRequest, step: Step) -> dict[str, Any]:
    personal = user_of(request).has_perm(SEE_PERSONAL)
    return {"row": decisions.of_step(step, personal=personal), "personal": personal}


TABLES = {
    "overview": Table(part="ops/_failed_row.html", section="overview", shows=_failed),
    "tasks": Table(part="ops/_task_row.html", section="tasks", shows=_task),
    "decisions": Table(part="ops/_decision_row.html", section="decisions", shows=_decision),
    "incident": Table(part="ops/_hit_row.html", section="incidents", shows=_hit),
}


def asks(request: HttpRequest) -> bool:
    """Return whether htmx asks for a row, and not a person for a page."""
    return bool(htmx(request)) and "in" in request.GET


def address(request: HttpRequest, step: Step) -> str:
    """Return where the row that a request is about is found as it is."""
    return _address(request, step, "row")


def _address(request: HttpRequest, step: Step, name: str) -> str:
    query = {
        name: request.GET[name] for name in ("in", "incident", "columns") if name in request.GET
    }
    return f"{reverse(f'ops:{name}', args=[step.id])}?{urlencode(query)}"


@require_safe
@requires(OPERATE)
def row(request: HttpRequest, step_id: int) -> HttpResponse:
    """Show a step's row alone: as it is, and what was just done about it."""
    step = or_404(task.step_by_id(step_id))
    if not asks(request):
        return task_page(request, step.task_id)
    return row_of(request, step)


def row_of(
    request: HttpRequest,
    step: Step,
    *,
    opened: bool = False,
    failed: Resubmission | None = None,
    late: dict[str, Any] | None = None,
    recording: dict[str, Any] | None = None,
) -> HttpResponse:
    """Return a step's row; with its form `opened`, or as it `failed`, or why an act came too `late`.

    `recording` is the form to record its result.
    """
    table = or_404(TABLES.get(request.GET["in"]))
    shown_messages = list(get_messages(request)) if late is None else []
    context = {
        **table.shows(request, step),
        **(late or recording or {}),
        "at": step,
        "recording": recording is not None,
        "deciding": _deciding(step) if opened or failed else None,
        "failed": failed,
        "failed_step": step.id,
        "late": late is not None,
        "messages": shown_messages,
        "replaced": True,
        "in_place": True,
        "redactor": redactor_for(request, step.task),
        "now": clock.database_now(),
        "table": request.GET["in"],
        "here": _address(request, step, "row"),
        "post_url": _address(request, step, "record" if recording else "resubmit"),
        "section": table.section,
        "part": table.part,
    }
    rights = {"resubmit": RESUBMIT, "bulk": BULK, "correct": CORRECT}
    context["may"] = {name: user_of(request).has_perm(needed) for name, needed in rights.items()}
    wrong = failed or (recording and request.method == "POST")
    response = render(
        request, "ops/_row.html", context, status=409 if late else 422 if wrong else 200
    )
    patch_vary_headers(response, ["HX-Request"])
    response.headers["Cache-Control"] = "no-store"
    return response


def _deciding(step: Step) -> dict[str, Any]:
    """Return what the form to resubmit a step says of it."""
    forgotten = step.in_doubt and step.error_code == KEY_FORGOTTEN
    return {"again": task.again(step), "forgotten": forgotten}
