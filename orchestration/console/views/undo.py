"""Having a task undone: first what that would do, call by call, and what it would not."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from ...decisions.progress import Refusal
from ...models import Operation, Task
from ...operations import single
from ...operations.undo_preview import undo_preview
from ..forms.actions import Undoing
from ..queries import conflicts
from ..queries import task as queries_task
from .limits import asked_for, day_shown
from .permissions import FORCE_UNDO, OPERATE, UNDO, forbidden, person_of, requires, user_of
from .responses import COMMAND, act_page, conflict, done, or_404, to_task


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, UNDO)
def undo(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Show what an undo would do, and begin it on the reader's word."""
    task, preview = or_404(queries_task.task_by_id(task_id)), or_404(undo_preview(task_id))
    if task.undo_at is not None:
        return _refused(request, task, Refusal.NOT_UNDOABLE)
    may_force = user_of(request).has_perm(FORCE_UNDO)
    standing = bool(preview["stands"])
    typed = request.POST if request.method == "POST" else None
    form = Undoing(typed, initial={"seen": preview["seen"]}, standing=standing)
    # what cannot be undone shows that it happened: to let it stand is a decision of its own
    allowed = may_force or not standing
    if typed is not None and allowed and form.is_valid():
        answer = single.undo(
            task,
            actor=person_of(request),
            reason=form.cleaned_data["reason"],
            force=form.cleaned_data.get("force", False),
            planned=form.cleaned_data["seen"],
        )
        if answer is None:
            return done(request, "The undo has started.", to_task(task)[0])
        if isinstance(answer, Operation):
            return asked_for(request, answer)
        return _refused(request, task, answer)
    if typed is not None and not allowed:
        return forbidden(request, FORCE_UNDO)
    command = f'{COMMAND} undo {task.id} --reason "…"' + (" --force" if standing else "")
    return act_page(
        request,
        "ops/undo.html",
        form,
        heading=f"Undo {task}",
        back=to_task(task),
        preview=preview,
        allowed=allowed,
        doubt=any(call["settled_first"] for call in preview["calls"]),
        command=command if allowed else "",
        day=day_shown(request),
    )


def _refused(request: HttpRequest, task: Task, refusal: Refusal) -> HttpResponse:
    back = to_task(task)
    advice = "Your action changed nothing: a task can be undone only once."
    if refusal is Refusal.CHANGED:
        advice = (
            "The task has changed since you opened the page, so the undo would be different. "
            "Check the new preview, then decide again."
        )
        back = (reverse("ops:undo", args=[task.id]), "Show the new preview")
    elif refusal is Refusal.IRREVERSIBLE:
        advice = f"{refusal.value.capitalize()}. The task was not changed."
    undone = refusal is Refusal.NOT_UNDOABLE
    return conflict(
        request,
        what=str(task),
        first=conflicts.last_undo_request(task.id) if undone else None,
        advice=advice,
        back=back,
    )
