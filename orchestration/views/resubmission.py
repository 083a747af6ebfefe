"""What operators do about a step in error: have it tried again, changed or not; or done by hand."""

from typing import Any

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from .. import queries, schemas
from ..act_forms import ByHand, Change
from ..forms import Resubmission
from ..models import Step
from ..progression import Refusal
from ..recovery import KEY_FORGOTTEN
from ..schema_forms import SchemaForm
from ..states import StepState
from ..transitions.resubmit import done_by_hand
from ..transitions.resubmit import resubmit as resubmit_step
from . import rows
from .access import CORRECT, OPERATE, RESUBMIT, requires, user_of, veil_for
from .outcome import conflict, done, late, ring_when_committed
from .task import task_page

FORM_METHODS = ["GET", "HEAD", "POST"]


@require_http_methods(FORM_METHODS)
@requires(OPERATE, RESUBMIT)
def resubmit(request: HttpRequest, step_id: int) -> HttpResponse:
    """Make a step in error pending again; say who was first if somebody was."""
    step = _step(step_id)
    if request.method != "POST":
        return _opened(request, step)
    form = Resubmission(request.POST)
    if not form.is_valid():
        if rows.asks(request):
            return rows.row_of(request, step, failed=form)
        return task_page(request, step.task_id, failed=form, step_id=step.id)
    with transaction.atomic():
        refusal = resubmit_step(
            step.id,
            attempt=form.cleaned_data["attempt"],
            actor=user_of(request).get_username(),
            reason=form.cleaned_data["reason"],
        )
        if refusal is None:
            ring_when_committed()
    if refusal:
        return _refused(request, step, form.cleaned_data["attempt"], refusal)
    to = rows.address(request, step) if rows.asks(request) else _back(step)[0]
    return done(request, f"“{step.name}” was resubmitted.", to)


def _opened(request: HttpRequest, step: Step) -> HttpResponse:
    """Return the form to resubmit a step: in its row, or else on the page of its task."""
    if not rows.asks(request):
        return task_page(request, step.task_id)
    if step.process_state != StepState.ERROR:
        return _refused(request, step, step.attempt, Refusal.NOT_IN_ERROR)
    return rows.row_of(request, step, opened=True)


@require_http_methods(FORM_METHODS)
@requires(OPERATE, RESUBMIT, CORRECT)
def change(request: HttpRequest, step_id: int) -> HttpResponse:
    """Resubmit a step with another input, or after somebody found out that nothing was done."""
    step = _step(step_id)
    if request.method != "POST" and step.process_state != StepState.ERROR:
        return _refused(request, step, step.attempt, Refusal.NOT_IN_ERROR)
    typed = request.POST if request.method == "POST" else None
    whole = "whole" in request.GET
    form = Change(typed, initial={"attempt": step.attempt})
    values = SchemaForm(
        typed,
        schema=schemas.accepted(step),
        was=step.request,
        veil=veil_for(request, step.task),
        whole=whole,
    )
    valid = typed is not None and form.is_valid() & values.is_valid()
    if valid and (answer := _change(request, step, form, values)):
        return answer
    context = {
        "step": step,
        "task": step.task,
        "form": form,
        "values": values,
        "whole": whole,
        "same": queries.again(step),
        "other": queries.again(step, changed=True),
        "nothing": queries.again(step, nothing_done=True),
        "forgotten": step.in_doubt and step.error_code == KEY_FORGOTTEN,
        "veil": veil_for(request, step.task),
        "section": "tasks",
    }
    return render(request, "ops/change.html", context, status=200 if typed is None else 422)


def _change(
    request: HttpRequest, step: Step, form: Change, values: SchemaForm
) -> HttpResponse | None:
    """Do it; return the answer, or None with an error in a form."""
    wanted = form.cleaned_data
    if step.in_doubt and not wanted["nothing_done"] and values.value != step.request:
        form.add_error("nothing_done", Refusal.IN_DOUBT.value.capitalize() + ".")
        return None
    try:
        with transaction.atomic():
            refusal = resubmit_step(
                step.id,
                attempt=wanted["attempt"],
                actor=user_of(request).get_username(),
                reason=wanted["reason"],
                request=values.value,
                nothing_done=wanted["nothing_done"],
            )
            if refusal is None:
                ring_when_committed()
    except schemas.Invalid as error:
        values.add_error(None, str(error))
        return None
    if refusal in {Refusal.KEY_FORGOTTEN, Refusal.IN_DOUBT}:
        form.add_error("nothing_done", refusal.value.capitalize() + ".")
        return None
    if refusal:
        return _refused(request, step, wanted["attempt"], refusal)
    changed = " with another input" if values.value != step.request else ""
    return done(request, f"“{step.name}” was resubmitted{changed}.", _back(step)[0])


@require_http_methods(FORM_METHODS)
@requires(OPERATE, CORRECT)
def by_hand(request: HttpRequest, step_id: int) -> HttpResponse:
    """Take an operator's word, and the result, that a step in error was done outside."""
    step = _step(step_id)
    if request.method != "POST" and step.process_state != StepState.ERROR:
        return _refused(request, step, step.attempt, Refusal.NOT_IN_ERROR)
    typed = request.POST if request.method == "POST" else None
    form = ByHand(typed, initial={"attempt": step.attempt})
    whole = "whole" in request.GET
    schema = schemas.returned(step.agent, step.action)
    values = SchemaForm(typed, schema=schema, was={}, whole=whole)
    if typed is not None and form.is_valid() & values.is_valid():
        wanted = form.cleaned_data
        with transaction.atomic():
            refusal = done_by_hand(
                step.id,
                attempt=wanted["attempt"],
                actor=user_of(request).get_username(),
                reason=wanted["reason"],
                result=values.value,
            )
            if refusal is None:
                ring_when_committed()
        if refusal:
            return _refused(request, step, wanted["attempt"], refusal)
        return done(request, f"“{step.name}” counts as done, by your word.", _back(step)[0])
    context: dict[str, Any] = {
        "step": step,
        "task": step.task,
        "form": form,
        "values": values,
        "whole": whole,
        "veil": veil_for(request, step.task),
        "section": "tasks",
    }
    return render(request, "ops/by_hand.html", context, status=200 if typed is None else 422)


def _step(step_id: int) -> Step:
    step = queries.step_by_id(step_id)
    if step is None:
        raise Http404
    return step


def _back(step: Step) -> tuple[str, str]:
    return reverse("ops:task", args=[step.task_id]), f"Back to {step.task}"


def _refused(request: HttpRequest, step: Step, attempt: int, refusal: Refusal) -> HttpResponse:
    step = queries.step_by_id(step.id) or step  # as it is by now
    first = queries.who_decided(step.task_id, step.id, attempt)
    what, advice = f"“{step.name}”", _advice(step, refusal, known=first is not None)
    if rows.asks(request):
        said = late(request, what=what, first=first, advice=advice)
        return rows.row_of(request, step, late=said)
    return conflict(request, what=what, first=first, advice=advice, back=_back(step))


def _advice(step: Step, refusal: Refusal, *, known: bool) -> str:
    state = step.get_process_state_display().lower()
    match refusal:
        case Refusal.OTHER_ATTEMPT if known:
            return "It has failed again since. Look at what it says now, then decide anew."
        case Refusal.OTHER_ATTEMPT:
            return (
                f"“{step.name}” was changed since you looked: another attempt of it has failed "
                "meanwhile. Look at what it says now, then decide anew."
            )
        case Refusal.NOT_BUILDABLE:
            return (
                f"The request of “{step.name}” still cannot be built: {step.error_message}. A step "
                "before it has to give what it takes."
            )
        case Refusal.KEY_FORGOTTEN:
            return f"“{step.name}” was not resubmitted: {refusal.value}."
        case _ if known:
            return f"The step is now {state}. Your press changed nothing, and nothing ran twice."
    return f"“{step.name}” is not in error: it is {state}. There is nothing to decide about it."
