"""Changing the input of a running task, for the steps that have not used it."""

import hashlib
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from ... import registry
from ...agents import payload_schemas
from ...agents.input_schema import input_schema
from ...decisions.input_change import TakenBy
from ...decisions.progress import Refusal
from ...models import Task
from ...operations import single
from ...payloads.text import as_text
from ...workflows.workflow import Workflow
from ..forms.actions import Amending
from ..forms.payload import PayloadForm
from ..queries import conflicts
from ..queries import task as queries_task
from .permissions import CORRECT, OPERATE, person_of, redactor_for, requires
from .responses import act_page, conflict, done, or_404, to_task

REMOVED = "{} cannot be removed: enter another value."


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, CORRECT)
def amend(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Change fields of a task's input; if it has changed or ended meanwhile, say so."""
    task = or_404(queries_task.task_by_id(task_id))
    workflow = registry.workflows.get(task.workflow)
    if workflow is None:
        return _refused(request, task, Refusal.NO_SUCH_WORKFLOW)
    if task.undo_at is not None or task.ended_at is not None:
        return _refused(request, task, Refusal.UNDOING if task.undo_at else Refusal.ENDED)
    typed = request.POST if request.method == "POST" else None
    form = Amending(typed, initial={"seen": version(task)})
    redactor = redactor_for(request, task)
    payload = PayloadForm(
        typed,
        schema=input_schema(workflow),
        former=task.data,
        redactor=(lambda _: redactor.input) if redactor else None,
    )
    valid = typed is not None and form.is_valid() & _is_whole(payload)
    if valid and (answer := _amend(request, task, workflow, form, payload)):
        return answer
    return act_page(
        request,
        "ops/amend.html",
        form,
        heading=f"Change the input of {task}",
        back=to_task(task),
        task=task,
        payload=payload,
        guarded=payload_schemas.guards(workflow.steps, task.data),
    )


def _is_whole(payload: PayloadForm) -> bool:
    """Return whether the input is valid, and has all fields that it had."""
    if not payload.is_valid():
        return False
    if gone := sorted(payload.former.keys() - payload.value.keys()):
        payload.add_error("payload", REMOVED.format(", ".join(gone)))
    return not gone


def _amend(
    request: HttpRequest, task: Task, workflow: Workflow, form: Amending, payload: PayloadForm
) -> HttpResponse | None:
    """Do it; return the answer, or None with an error in a form."""
    if form.cleaned_data["seen"] != version(task):
        return _refused(request, task, Refusal.CHANGED)
    changed = {
        name: value
        for name, value in payload.value.items()
        if name not in task.data or task.data[name] != value
    }
    if not changed:
        return done(request, "The input is the same.", to_task(task)[0])
    try:
        answer = single.amend(
            task,
            workflow,
            actor=person_of(request),
            reason=form.cleaned_data["reason"],
            data=changed,
        )
    except ValueError as error:
        why = str(error).rstrip(".")
        payload.add_error("payload", f"{why[:1].upper()}{why[1:]}.")
        return None
    if isinstance(answer, TakenBy):
        steps = ", ".join(f"“{step}”" for step in answer.steps)
        payload.add_error(
            "payload", f"Nothing was changed: {steps} used a value that was to change."
        )
        return None
    if answer is not None:
        return _refused(request, task, answer)
    fields = ", ".join(sorted(changed))
    return done(request, f"The input has changed ({fields}).", to_task(task)[0])


def version(task: Task) -> str:
    """Return what distinguishes a task's input from what it was before."""
    text = as_text(dict(sorted(task.data.items())))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _refused(request: HttpRequest, task: Task, refusal: Refusal) -> HttpResponse:
    changed = refusal is Refusal.CHANGED
    return conflict(
        request,
        what=str(task),
        first=conflicts.last_amendment(task.id) if changed else None,
        advice=f"Your action changed nothing: {refusal.value}.",
        back=to_task(task),
    )
