"""Record the result of a step that awaits it: on a page of its own, or in a row of the decisions."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from ...agents import payload_schemas
from ...agents.by_hand import concerns_money
from ...decisions.progress import Refusal
from ...models import Operation, Step
from ...operations import single
from ...states import StepState
from ...waiting.awaited import awaited
from ..forms.actions import RecordedResult
from ..forms.payload import PayloadForm
from ..queries import conflicts, task
from . import step_rows
from .limits import asked_for, day_shown
from .permissions import CORRECT, OPERATE, person_of, redactor_for, requires
from .responses import act_page, conflict, done, late, or_404, to_task


@dataclass(frozen=True, kw_only=True)
class Forms:
    """What is asked of a person: how it ended and why, and the result."""

    step: Step
    form: RecordedResult
    payload: PayloadForm

    def is_valid(self) -> bool:
        """Return whether it can be recorded; of what was refused there is no result."""
        valid = self.form.is_valid()
        refused = self.form.data.get("ended") == RecordedResult.REFUSED
        return (refused or self.payload.is_valid()) and valid

    def context(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the page, and the row, show with them."""
        return {
            "step": self.step,
            "payload": self.payload,
            "redactor": redactor_for(request, self.step.task),
            "money": concerns_money(self.step),
            "day": day_shown(request),
            "codes": [code for code in (self.step.flow or {}).get("refused", ()) if code != "*"],
        }


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, CORRECT)
def record(request: HttpRequest, step_id: int) -> HttpResponse:
    """Record how an awaiting step ended; if it has ended meanwhile, show who was first."""
    step = or_404(task.step_by_id(step_id))
    if step.process_state != StepState.AWAITING:
        return _late(request, step)
    forms = _forms(request, step)
    if request.method == "POST" and forms.is_valid() and (answer := _record(request, forms)):
        return answer
    context = forms.context(request)
    if step_rows.asks(request):
        return step_rows.row_of(request, step, recording={**context, "form": forms.form})
    return act_page(
        request,
        "ops/record.html",
        forms.form,
        heading=f"Record the result of “{step.name}”",
        back=to_task(step.task),
        awaited=awaited(step),
        **context,
    )


def _forms(request: HttpRequest, step: Step) -> Forms:
    typed = request.POST if request.method == "POST" else None
    schema = payload_schemas.returned(
        step.agent, step.action, computed=(step.task.workflow, step.name)
    )
    first = {"attempt": step.attempt, "ended": RecordedResult.DONE}
    return Forms(
        step=step,
        form=RecordedResult(typed, initial=first),
        payload=PayloadForm(typed, schema=schema),
    )


def _record(request: HttpRequest, forms: Forms) -> HttpResponse | None:
    """Do it; return the answer, or None with an error in a form."""
    step, cleaned = forms.step, forms.form.cleaned_data
    refused = cleaned["code"] if cleaned["ended"] == RecordedResult.REFUSED else ""
    try:
        answer = single.record_result(
            step,
            attempt=cleaned["attempt"],
            actor=person_of(request),
            reason=cleaned["reason"],
            result={} if refused else forms.payload.value,
            refused=refused,
        )
    except single.NotShown as error:
        forms.payload.add_error("payload", f"{error}.".capitalize())
        return None
    if isinstance(answer, Operation):
        return asked_for(request, answer)
    if isinstance(answer, Refusal):
        return _late(request, task.step_by_id(step.id) or step)
    to = step_rows.address(request, step) if step_rows.asks(request) else to_task(step.task)[0]
    what = f"was refused ({refused})" if refused else "has its result"
    return done(request, f"“{step.name}” {what}.", to)


def _late(request: HttpRequest, step: Step) -> HttpResponse:
    first = conflicts.report_of_step(step.task_id, step.id)
    what, state = f"“{step.name}”", step.get_process_state_display().lower()
    advice = f"{what} awaits no result: it is {state}. Nothing was recorded."
    if step.process_state == StepState.AWAITING:
        advice = f"{what} has changed since you opened the page. Nothing was recorded: look again."
    if step_rows.asks(request):
        notice = late(request, what=what, first=first, advice=advice)
        return step_rows.row_of(request, step, late=notice)
    return conflict(request, what=what, first=first, advice=advice, back=to_task(step.task))
