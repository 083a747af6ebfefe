"""Giving one task another priority."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from ...decisions.progress import Refusal
from ...messaging import queues
from ...models import Task
from ...transitions.priority import prioritize
from ..forms.actions import Prioritizing
from ..queries import conflicts
from ..queries import task as queries_task
from .permissions import OPERATE, PRIORITIZE, requires, user_of
from .responses import COMMAND, act_page, conflict, done, or_404, to_task


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, PRIORITIZE)
def priority(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Change a task's priority, and that of its steps that have not ended."""
    task = or_404(queries_task.task_by_id(task_id))
    typed = request.POST if request.method == "POST" else None
    form = Prioritizing(typed, initial={"seen": task.priority, "priority": task.priority})
    if form.is_valid():
        level = form.cleaned_data["priority"]
        refusal = prioritize(
            task.id,
            level,
            actor=user_of(request).get_username(),
            reason=form.cleaned_data["reason"],
            seen=form.cleaned_data["seen"],
        )
        if refusal is None:
            queues.ring_after_commit(queues.SCHEDULER)
            return done(request, f"The priority is now {level}.", to_task(task)[0])
        return _refused(request, task, refusal)
    return act_page(
        request,
        "ops/priority.html",
        form,
        heading=f"Priority of {task}",
        back=to_task(task),
        task=task,
        command=f'{COMMAND} prioritize {task.id} --priority 5 --reason "…"',
    )


def _refused(request: HttpRequest, task: Task, refusal: Refusal) -> HttpResponse:
    changed = refusal is not Refusal.ENDED
    return conflict(
        request,
        what=str(task),
        first=conflicts.last_priority_change(task.id) if changed else None,
        advice=f"Your action changed nothing: {refusal.value}.",
        back=to_task(task),
    )
