"""Actions on a step in error: resubmit it, changed or not, or mark it as done by hand."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from ...agents import payload_schemas
from ...agents.by_hand import concerns_money
from ...decisions.progress import Refusal
from ...decisions.recovery import KEY_FORGOTTEN
from ...models import Operation, Step
from ...operations import single
from ...states import StepState
from ..forms.actions import ByHand, ChangedResubmission
from ..forms.payload import PayloadForm
from ..forms.search import Resubmission
from ..queries import conflicts, task
from . import step_rows
from .limits import asked_for, day_shown
from .permissions import CORRECT, OPERATE, RESUBMIT, person_of, redactor_for, requires
from .responses import act_page, conflict, done, late, or_404, to_task
from .task import task_page

FORM_METHODS = ["GET", "HEAD", "POST"]


@require_http_methods(FORM_METHODS)
@requires(OPERATE, RESUBMIT)
def resubmit(request: HttpRequest, step_id: int) -> HttpResponse:
    """Make a step in error pending again; on a conflict, show who acted first."""
    step = or_404(task.step_by_id(step_id))
    if request.method != "POST":
        return _opened(request, step)
    form = Resubmission(request.POST)
    if not form.is_valid():
        if step_rows.asks(request):
            return step_rows.row_of(request, step, failed=form)
        return task_page(request, step.task_id, failed=form, step_id=step.id)
    refusal = single.resubmit(
        step,
        attempt=form.cleaned_data["attempt"],
        actor=person_of(request),
        reason=form.cleaned_data["reason"],
    )
    if refusal:
        return _refused(request, step, form.cleaned_data["attempt"], refusal)
    to = step_rows.address(request, step) if step_rows.asks(request) else to_task(step.task)[0]
    return done(request, f"“{step.name}” was resubmitted.", to)


def _opened(request: HttpRequest, step: Step) -> HttpResponse:
    """Return the form to resubmit a step: in its row, or else on the page of its task."""
    if not step_rows.asks(request):
        return task_page(request, step.task_id)
    if step.process_state != StepState.ERROR:
        return _refused(request, step, step.attempt, Refusal.NOT_IN_ERROR)
    return step_rows.row_of(request, step, opened=True)


@require_http_methods(FORM_METHODS)
@requires(OPERATE, RESUBMIT, CORRECT)
def change(request: HttpRequest, step_id: int) -> HttpResponse:
    """Resubmit a step with another input, or after a check that nothing was done."""
    step = or_404(task.step_by_id(step_id))
    if request.method != "POST" and step.process_state != StepState.ERROR:
        return _refused(request, step, step.attempt, Refusal.NOT_IN_ERROR)
    typed = request.POST if request.method == "POST" else None
    form = ChangedResubmission(typed, initial={"attempt": step.attempt})
    redactor = redactor_for(request, step.task)
    payload = PayloadForm(
        typed, schema=payload_schemas.accepted(step), former=step.request, redactor=redactor
    )
    valid = typed is not None and form.is_valid() & payload.is_valid()
    if valid and (answer := _change(request, step, form, payload)):
        return answer
    return act_page(
        request,
        "ops/change.html",
        form,
        heading=f"Resubmit “{step.name}” with changes",
        back=to_task(step.task),
        step=step,
        payload=payload,
        same=task.again(step),
        other=task.again(step, changed=True),
        nothing=task.again(step, nothing_done=True),
        forgotten=step.in_doubt and step.error_code == KEY_FORGOTTEN,
        redactor=redactor,
        guarded=payload_schemas.guarded(step),
        day=day_shown(request),
    )


def _change(
    request: HttpRequest, step: Step, form: ChangedResubmission, payload: PayloadForm
) -> HttpResponse | None:
    """Do it; return the answer, or None with an error in a form."""
    cleaned = form.cleaned_data
    if step.in_doubt and not cleaned["nothing_done"] and payload.value != step.request:
        form.add_error("nothing_done", Refusal.IN_DOUBT.value.capitalize() + ".")
        return None
    try:
        answer = single.change(
            step,
            attempt=cleaned["attempt"],
            actor=person_of(request),
            reason=cleaned["reason"],
            request=payload.value,
            nothing_done=cleaned["nothing_done"],
        )
    except payload_schemas.Invalid as error:
        payload.add_error("payload", str(error))
        return None
    if isinstance(answer, Refusal) and answer in {Refusal.KEY_FORGOTTEN, Refusal.IN_DOUBT}:
        form.add_error("nothing_done", answer.value.capitalize() + ".")
        return None
    if answer is not None:
        return _answered(request, step, cleaned["attempt"], answer)
    changed = " with a changed input" if payload.value != step.request else ""
    return done(request, f"“{step.name}” was resubmitted{changed}.", to_task(step.task)[0])


@require_http_methods(FORM_METHODS)
@requires(OPERATE, CORRECT)
def by_hand(request: HttpRequest, step_id: int) -> HttpResponse:
    """Take an operator's word, and the result, that a step in error was done outside."""
    step = or_404(task.step_by_id(step_id))
    if request.method != "POST" and step.process_state != StepState.ERROR:
        return _refused(request, step, step.attempt, Refusal.NOT_IN_ERROR)
    typed = request.POST if request.method == "POST" else None
    form = ByHand(typed, initial={"attempt": step.attempt})
    computed = step.task.workflow, step.name
    schema = payload_schemas.returned(step.agent, step.action, computed=computed)
    payload = PayloadForm(typed, schema=schema)
    valid = typed is not None and form.is_valid() & payload.is_valid()
    if valid and (answer := _mark_done(request, step, form, payload)):
        return answer
    return act_page(
        request,
        "ops/by_hand.html",
        form,
        heading=f"Mark “{step.name}” as done by hand",
        back=to_task(step.task),
        step=step,
        payload=payload,
        redactor=redactor_for(request, step.task),
        money=concerns_money(step),
        day=day_shown(request),
    )


def _mark_done(
    request: HttpRequest, step: Step, form: ByHand, payload: PayloadForm
) -> HttpResponse | None:
    """Do it; return the answer, or None with an error in a form."""
    cleaned = form.cleaned_data
    try:
        answer = single.done_by_hand(
            step,
            attempt=cleaned["attempt"],
            actor=person_of(request),
            reason=cleaned["reason"],
            result=payload.value,
        )
    except single.NotShown as error:
        payload.add_error("payload", f"{error}.".capitalize())
        return None
    if answer is not None:
        return _answered(request, step, cleaned["attempt"], answer)
    return done(request, f"“{step.name}” is marked as done.", to_task(step.task)[0])


def _answered(
    request: HttpRequest, step: Step, attempt: int, answer: Refusal | Operation
) -> HttpResponse:
    """Say why it was refused, or lead to the operation that waits for a second person."""
    if isinstance(answer, Operation):
        return asked_for(request, answer)
    return _refused(request, step, attempt, answer)


def _refused(request: HttpRequest, step: Step, attempt: int, refusal: Refusal) -> HttpResponse:
    step = task.step_by_id(step.id) or step  # as it is by now
    first = conflicts.decision_on_step(step.task_id, step.id, attempt)
    what, advice = f"“{step.name}”", _advice(step, refusal, known=first is not None)
    if step_rows.asks(request):
        notice = late(request, what=what, first=first, advice=advice)
        return step_rows.row_of(request, step, late=notice)
    return conflict(request, what=what, first=first, advice=advice, back=to_task(step.task))


def _advice(step: Step, refusal: Refusal, *, known: bool) -> str:
    state = step.get_process_state_display().lower()
    match refusal:
        case Refusal.OTHER_ATTEMPT if known:
            return "It has failed again since. Check the new error, then decide again."
        case Refusal.OTHER_ATTEMPT:
            return (
                f"“{step.name}” has changed since you opened the page: another attempt failed. "
                "Check the new error, then decide again."
            )
        case Refusal.NOT_BUILDABLE:
            return (
                f"The request of “{step.name}” still cannot be built: {step.error_message}. A step "
                "before it has to give what it takes."
            )
        case Refusal.KEY_FORGOTTEN | Refusal.TOO_EARLY:
            return f"“{step.name}” was not resubmitted: {refusal.value}."
        case _ if known:
            return f"The step is now {state}. Your action changed nothing, and nothing ran twice."
    return f"“{step.name}” is not in error: it is {state}. No action is needed."
