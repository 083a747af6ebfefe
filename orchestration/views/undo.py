"""Having a task undone: first what that would do, call by call, and what it would not."""

from uuid import UUID

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from .. import queries
from ..act_forms import Undoing
from ..models import Task
from ..progression import Refusal
from ..transitions.undo import undo as undo_task
from .access import FORCE_UNDO, OPERATE, UNDO, forbidden, requires, user_of
from .outcome import COMMAND, conflict, done, ring_when_committed


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, UNDO)
def undo(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Show what an undo would do, and begin it on the reader's word."""
    task, preview = queries.task_by_id(task_id), queries.undo_preview(task_id)
    if task is None or preview is None:
        raise Http404
    if task.undo_at is not None:
        return _refused(request, task, Refusal.NOT_UNDOABLE)
    may_force = user_of(request).has_perm(FORCE_UNDO)
    standing = bool(preview["stands"])
    typed = request.POST if request.method == "POST" else None
    form = Undoing(typed, initial={"seen": preview["seen"]}, standing=standing)
    # what cannot be undone shows that it happened: to let it stand is a decision of its own
    allowed = may_force or not standing
    if typed is not None and allowed and form.is_valid():
        refusal = _begin(request, task, form)
        if refusal is None:
            return done(request, "The undo has begun.", _back(task)[0])
        return _refused(request, task, refusal)
    if typed is not None and not allowed:
        return forbidden(request, FORCE_UNDO)
    context = {
        "task": task,
        "preview": preview,
        "form": form,
        "allowed": allowed,
        "doubt": any(call["settled_first"] for call in preview["calls"]),
        "command": f'{COMMAND} undo {task.id} --reason "…"' + (" --force" if standing else ""),
        "section": "tasks",
    }
    return render(request, "ops/undo.html", context, status=200 if typed is None else 422)


@transaction.atomic
def _begin(request: HttpRequest, task: Task, form: Undoing) -> Refusal | None:
    refusal = undo_task(
        task.id,
        actor=user_of(request).get_username(),
        reason=form.cleaned_data["reason"],
        force=form.cleaned_data.get("force", False),
        planned=form.cleaned_data["seen"],
    )
    if refusal is None:
        ring_when_committed()
    return refusal


def _refused(request: HttpRequest, task: Task, refusal: Refusal) -> HttpResponse:
    back = _back(task)
    advice = "Your press changed nothing: it is undone once."
    if refusal is Refusal.CHANGED:
        advice = (
            "The task went on since you looked, so an undo would do something else by now. "
            "Look again, then decide anew."
        )
        back = (reverse("ops:undo", args=[task.id]), "Look at the undo again")
    elif refusal is Refusal.IRREVERSIBLE:
        advice = f"{refusal.value.capitalize()}. The task was left as it is."
    undone = refusal is Refusal.NOT_UNDOABLE
    return conflict(
        request,
        what=str(task),
        first=queries.who_undid(task.id) if undone else None,
        advice=advice,
        back=back,
    )


def _back(task: Task) -> tuple[str, str]:
    return reverse("ops:task", args=[task.id]), f"Back to {task}"
