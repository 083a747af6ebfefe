"""Giving one task another priority."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from .. import queries
from ..act_forms import Prioritizing
from ..models import Task
from ..progression import Refusal
from ..transitions.priority import prioritize
from .access import OPERATE, PRIORITIZE, requires, user_of
from .outcome import COMMAND, conflict, done, ring_when_committed


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, PRIORITIZE)
def priority(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Change a task's priority, and that of its steps that have not ended."""
    task = queries.task_by_id(task_id)
    if task is None:
        raise Http404
    typed = request.POST if request.method == "POST" else None
    form = Prioritizing(typed, initial={"seen": task.priority, "priority": task.priority})
    if form.is_valid():
        wanted = form.cleaned_data["priority"]
        refusal = prioritize(
            task.id,
            wanted,
            actor=user_of(request).get_username(),
            reason=form.cleaned_data["reason"],
            seen=form.cleaned_data["seen"],
        )
        if refusal is None:
            ring_when_committed()
            return done(request, f"Its priority is {wanted} now.", _back(task)[0])
        return _refused(request, task, refusal)
    context = {
        "task": task,
        "form": form,
        "command": f'{COMMAND} prioritize {task.id} --priority 5 --reason "…"',
        "section": "tasks",
    }
    return render(request, "ops/priority.html", context, status=200 if typed is None else 422)


def _refused(request: HttpRequest, task: Task, refusal: Refusal) -> HttpResponse:
    changed = refusal is not Refusal.ENDED
    return conflict(
        request,
        what=str(task),
        first=queries.who_prioritized(task.id) if changed else None,
        advice=f"Your press changed nothing: {refusal.value}.",
        back=_back(task),
    )


def _back(task: Task) -> tuple[str, str]:
    return reverse("ops:task", args=[task.id]), f"Back to {task}"
