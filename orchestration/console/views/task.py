"""The page of one task."""

import logging
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from ... import registry
from ...applications import by_hand
from ...applications.external_view import ExternalView
from ...models import Task
from ...tracing import ids
from ...tracing.subject import about_reference
from ..charts.waterfall import waterfall
from ..forms.search import Resubmission
from ..queries.task import task_detail
from .live import live
from .permissions import (
    ACKNOWLEDGE,
    CORRECT,
    HOLD,
    OPERATE,
    PRIORITIZE,
    RESUBMIT,
    SEE_PERSONAL,
    START,
    UNDO,
    redactor_for,
    requires,
    user_of,
)
from .responses import or_404

logger = logging.getLogger(__name__)

MAY = {
    "resubmit": RESUBMIT,
    "correct": CORRECT,
    "undo": UNDO,
    "hold": HOLD,
    "prioritize": PRIORITIZE,
    "acknowledge": ACKNOWLEDGE,
    "start": START,
}


@require_safe
@requires(OPERATE)
def task(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Show one task: where it stands, what happens next, what happened."""
    return task_page(request, task_id)


def task_page(
    request: HttpRequest,
    task_id: UUID,
    *,
    failed: Resubmission | None = None,
    step_id: int | None = None,
) -> HttpResponse:
    """Return a task's page; with the form of `step_id` as it `failed`, if it did."""
    detail = or_404(task_detail(task_id))
    trace_id = ids.trace_id(detail.task.reference)
    context = {
        "trace_id": trace_id,
        "trace_url": settings.TRACE_URL.replace("{trace_id}", trace_id),
        "now": detail.now,
        "detail": detail,
        "task": detail.task,
        "chart": waterfall(detail),
        "external_view": _external_view(
            detail.task, personal=user_of(request).has_perm(SEE_PERSONAL)
        ),
        "declared": _declared(detail.task.workflow),
        "again": _may_be_started_again(detail.task.workflow),
        "may": {name: user_of(request).has_perm(needed) for name, needed in MAY.items()},
        "redactor": redactor_for(request, detail.task),
        "failed": failed,
        "failed_step": step_id,
        "section": "tasks",
        "heading": str(detail.task),
    }
    return live(
        request,
        "ops/task.html",
        "ops/_task.html",
        context,
        address=reverse("ops:task", args=[task_id]),
        status=422 if failed else 200,
    )


def _external_view(task: Task, *, personal: bool) -> ExternalView | None:
    """Return what those outside see of a task, as far as its application says so."""
    see = registry.external_views.get(task.workflow)
    if see is None:
        return None
    try:
        return see(task.reference, personal)
    except Exception:  # operators need this page, also if an application's code raises
        about = about_reference(task.workflow, task.reference)
        logger.exception("the external view of %s %s failed", *about.values(), extra=about)
        return ExternalView(
            who="others", sentence="This is not available at the moment.", mood="warning"
        )


def _may_be_started_again(workflow: str) -> bool:
    """Return whether a task of a workflow may be started by hand with the input of another one."""
    known = registry.workflows.get(workflow)
    return known is not None and not by_hand.why_not(known, again=True)


def _declared(workflow: str) -> set[str]:
    """Return the steps that a workflow has by now: only these can be held in every task."""
    known = registry.workflows.get(workflow)
    return {step.name for step in known.steps} if known else set()
