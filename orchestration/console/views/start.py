"""Starting tasks by hand: of a workflow that allows it, or again with the input of a task."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe
from django_htmx.http import HttpResponseClientRedirect

from ... import registry
from ...agents.input_schema import input_schema
from ...applications import by_hand
from ...database import clock
from ...models import Task
from ...payloads.placeholders import Unresolved
from ...workflows.workflow import Workflow
from ..forms.start import InputForm, StartForm
from ..queries import task as queries_task
from .in_place import htmx
from .live import live
from .permissions import OPERATE, START, redactor_for, requires, user_of
from .responses import act_page, done, or_404, to_task


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, START)
def start(request: HttpRequest, workflow: str) -> HttpResponse:
    """Start a task of a workflow with an input that is typed in."""
    declared = or_404(registry.workflows.get(workflow))
    typed = request.POST if request.method == "POST" else None
    form = StartForm(typed, initial={"reference": by_hand.new_reference()})
    payload = InputForm(typed, input_schema(declared))
    refusal = by_hand.why_not(declared)
    if not refusal and typed is not None and form.is_valid() & payload.is_valid():
        try:
            return _started(request, declared, form, payload.value)
        except (Unresolved, ValueError) as error:  # an input that cannot be kept, say
            payload.add_error(None, f"{str(error).rstrip('.')}.")
    back = (f"{reverse('ops:workflows')}#workflow-{workflow}", "Back to the workflows")
    return _page(request, form, heading=f"Start a task of {workflow}", back=back,
                 payload=payload, refusal=refusal, section="workflows")  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, START)
def again(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Start a task with the input of another one."""
    task = or_404(queries_task.task_by_id(task_id))
    declared = registry.workflows.get(task.workflow)
    typed = request.POST if request.method == "POST" else None
    form = StartForm(typed, initial={"reference": by_hand.new_reference(again=True)})
    refusal = "Its workflow is no longer declared."
    if declared is not None:
        refusal = by_hand.why_not(declared, again=True) or declared.refuse_by_hand(task.data)
        if not refusal and form.is_valid():
            try:
                return _started(request, declared, form, task.data, again=task)
            except (Unresolved, ValueError) as error:  # of a release with other bounds, say
                refusal = f"The input does not fit its workflow any more: {error}."
    return _page(request, form, heading=f"Start {task} again", back=to_task(task), task=task,
                 refusal=refusal, redactor=redactor_for(request, task))  # fmt: skip


def _page(request: HttpRequest, form: StartForm, *, refusal: str, **context: Any) -> HttpResponse:
    return act_page(request, "ops/start.html", form, refusal=refusal, **context)


def _started(
    request: HttpRequest, workflow: Workflow, form: StartForm, data: Any, **options: Any
) -> HttpResponse:
    cleaned = form.cleaned_data
    with transaction.atomic():
        fresh = by_hand.start(
            workflow.name,
            cleaned["reference"],
            data,
            actor=user_of(request).get_username(),
            reason=cleaned["reason"],
            **options,
        )
    words = "The task was started." if fresh else "This form was sent before: it started one task."
    return done(request, words, reverse("ops:started", args=[workflow.name, cleaned["reference"]]))


@require_safe
@requires(OPERATE)
def started(request: HttpRequest, workflow: str, reference: str) -> HttpResponse:
    """Lead on to the task that a submission became; until then, say that it waits."""
    if "\0" in workflow + reference:
        raise Http404
    # first the submission: it may become a task between the two
    submission = queries_task.submission_named(workflow, reference)
    if task := Task.named(workflow, reference):
        address = reverse("ops:task", args=[task.id])
        return (
            HttpResponseClientRedirect(address) if htmx(request) else HttpResponseRedirect(address)
        )
    if submission is None:
        raise Http404
    context = {
        "now": clock.database_now(),
        "submission": submission,
        "section": "workflows",
        "heading": f"{workflow} {reference}",
    }
    return live(request, "ops/live.html", "ops/_started.html", context)
