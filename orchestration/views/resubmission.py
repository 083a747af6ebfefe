"""The operators' act: have a failed step tried again, once, by name and with a reason (P25)."""

from functools import partial

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from .. import queries, queues
from ..forms import Resubmission
from ..models import Step
from ..progression import Refusal
from ..transitions import resubmit as resubmit_step
from .access import OPERATE, RESUBMIT, requires, user_of
from .task import task_page


@require_POST
@requires(OPERATE, RESUBMIT)
def resubmit(request: HttpRequest, step_id: int) -> HttpResponse:
    """Make a step in error pending again; say who was first if somebody was."""
    step = queries.step_by_id(step_id)
    if step is None:
        raise Http404
    form = Resubmission(request.POST)
    if not form.is_valid():
        return task_page(request, step.task_id, failed=form, step_id=step.id)
    attempt: int = form.cleaned_data["attempt"]
    with transaction.atomic():
        refusal = resubmit_step(
            step.id,
            attempt=attempt,
            actor=user_of(request).get_username(),
            reason=form.cleaned_data["reason"],
        )
        if refusal is None:
            # the supervisor would ring too, a second later
            transaction.on_commit(partial(queues.try_to_ring, queues.SCHEDULER))
    if refusal:
        return _refused(request, step, attempt, refusal)
    messages.success(request, f"“{step.name}” was resubmitted.")
    return HttpResponseRedirect(reverse("ops:task", args=[step.task_id]), status=303)


def _refused(request: HttpRequest, step: Step, attempt: int, refusal: Refusal) -> HttpResponse:
    first = queries.who_resubmitted(step.id, attempt)
    context = {
        "step": step,
        "task": step.task,
        "first": first,
        "refusal": refusal,
        "yourself": first is not None and first.actor == user_of(request).get_username(),
        "now": queries.database_now(),
        "section": "tasks",
    }
    return render(request, "ops/conflict.html", context, status=409)
