"""The page of one task."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from .. import queries
from ..forms import Resubmission
from .access import OPERATE, RESUBMIT, requires, user_of, veil_for
from .live import live
from .waterfall import waterfall


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
    detail = queries.task_detail(task_id)
    if detail is None:
        raise Http404
    context = {
        "now": detail.now,
        "detail": detail,
        "task": detail.task,
        "chart": waterfall(detail),
        "may_resubmit": user_of(request).has_perm(RESUBMIT),
        "veil": veil_for(request, detail.task.workflow, detail.task.data),
        "failed": failed,
        "failed_step": step_id,
        "section": "tasks",
    }
    return live(
        request,
        "ops/task.html",
        "ops/_task.html",
        context,
        address=reverse("ops:task", args=[task_id]),
        status=422 if failed else 200,
    )
