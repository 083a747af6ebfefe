"""Actions on bulk operations: dry run, confirm, approve, pause, resume, abort."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from ...decisions.progress import Refusal
from ...models import Incident, Operation
from ...models.operation import Act, OperationState
from ...operations import controls, lifecycle
from ...operations.items import SelectedTasks
from ...operations.rights import needed
from .. import selection as dashboard_selection
from ..forms.operations import Choosing, Confirmation, Word
from ..queries import operations
from .operations import dry_run
from .permissions import (
    APPROVE,
    BULK,
    FORCE_UNDO,
    OPERATE,
    SEE_PERSONAL,
    forbidden,
    person_of,
    requires,
    user_of,
)
from .responses import conflict, done, or_404

Doing = Callable[..., Refusal | None]
AGAIN = (Refusal.GROWN, Refusal.NOTHING_TO_DO)  # the dry run is shown anew


@require_POST
@requires(OPERATE, BULK)
def operation_new(request: HttpRequest) -> HttpResponse:
    """Make the dry run of an act on a selection, and show it."""
    form = Choosing(request.POST)
    if not form.is_valid():
        problems = [str(error) for errors in form.errors.values() for error in errors]
        return _back_to_tasks(request, problems)
    act, selection = Act(form.cleaned_data["act"]), form.cleaned_data["selection"]
    sample = form.cleaned_data["sample"]
    incident = _incident(selection)
    untried = incident and act == Act.RESUBMIT and not operations.ever_tried(incident)
    if untried and not sample and "whole" not in request.POST:
        sample = 1  # a first try takes one item, unless the user asks for all
    return _draft(request, act, selection, sample=sample)


@require_POST
@requires(OPERATE, BULK)
def operation_likewise(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Make a dry run of another operation's action, on its selection as it is now."""
    operation = or_404(operations.operation_by_id(operation_id))
    return _draft(
        request, Act(operation.act), operation.selection, sample=None, forced=operation.forced
    )


def _draft(
    request: HttpRequest,
    act: Act,
    selection: dict[str, Any],
    *,
    sample: int | None,
    forced: bool = False,
) -> HttpResponse:
    if not user_of(request).has_perms(needed(act, forced=forced)):
        return forbidden(request, *needed(act, forced=forced))
    incident = _incident(selection)
    try:
        chosen = _selected(request, selection, forced=forced)
    except dashboard_selection.Meaningless as problem:
        return _back_to_tasks(request, [str(problem)])
    made = lifecycle.draft(
        act,
        selection,
        chosen,
        actor=person_of(request),
        incident=incident.id if incident else None,
        sample=sample,
    )
    return HttpResponseRedirect(reverse("ops:operation", args=[made.id]), status=303)


def _back_to_tasks(request: HttpRequest, problems: Iterable[str]) -> HttpResponse:
    for problem in problems:
        messages.error(request, problem)
    return HttpResponseRedirect(reverse("ops:tasks"), status=303)


def _selected(
    request: HttpRequest, selection: dict[str, Any], *, forced: bool = False
) -> SelectedTasks:
    chosen = dashboard_selection.meaning(
        selection, personal=user_of(request).has_perm(SEE_PERSONAL)
    )
    return replace(chosen, forced=forced)


def _incident(selection: dict[str, Any]) -> Incident | None:
    if "incident" not in selection:
        return None
    return or_404(Incident.objects.filter(id=selection["incident"]).first())


@require_POST
@requires(OPERATE, BULK)
def operation_confirm(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Confirm a dry run and schedule it."""
    operation = or_404(operations.operation_by_id(operation_id))
    # of what is asked for: by the time it is locked, the row may be another than this one
    must = needed(Act(operation.act), forced=operation.forced or "force" in request.POST)
    if not user_of(request).has_perms(must):
        return forbidden(request, *must)
    if operation.state != OperationState.DRAFT:
        return _too_late(request, operation)
    form = Confirmation(request.POST, act=operation.act, forced=operation.forced)
    if not form.is_valid():
        return dry_run(request, operation, form=form)
    try:
        refusal = _confirm(request, operation, form)
        problem = f"{refusal.value.capitalize()}." if refusal else ""
    except dashboard_selection.Meaningless as nonsense:
        refusal, problem = None, str(nonsense)
    if refusal in {Refusal.CHANGED, Refusal.NOT_PERMITTED}:
        return _too_late(request, operation, refusal)
    if problem:
        # what was typed stays, to be sent again
        refilled = Confirmation(
            act=operation.act, forced=operation.forced, initial=form.cleaned_data
        )
        return dry_run(request, operation, form=refilled, problem=problem)
    return HttpResponseRedirect(reverse("ops:operation", args=[operation.id]), status=303)


def _confirm(request: HttpRequest, operation: Operation, form: Confirmation) -> Refusal | None:
    """Confirm a dry run; repeat it if the selection is not the one that was shown."""
    selected = _selected(request, operation.selection, forced="force" in request.POST)
    chosen = replace(selected, most=form.cleaned_data["shown"] or 0)
    refusal = lifecycle.confirm(
        operation.id,
        chosen,
        actor=person_of(request),
        reason=form.cleaned_data["reason"],
        rate=form.cleaned_data["rate"],
        sample=(operation.sample or 1) if form.cleaned_data["first"] == "sample" else None,
        terms=lifecycle.Terms(result=form.cleaned_data.get("result")),
    )
    if refusal in AGAIN:
        lifecycle.preview(operation, chosen)
        operation.refresh_from_db()
    return refusal


@require_POST
@requires(OPERATE, BULK)
def operation_look(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Repeat a dry run, as the selection may have changed; with `force`, of a forced undo."""
    operation = or_404(operations.operation_by_id(operation_id))
    forced = operation.act == Act.UNDO and "force" in request.POST
    if forced and not user_of(request).has_perms(needed(Act.UNDO, forced=True)):
        return forbidden(request, FORCE_UNDO)
    if operation.state != OperationState.DRAFT:
        return _too_late(request, operation)
    try:
        lifecycle.preview(operation, _selected(request, operation.selection, forced=forced))
    except dashboard_selection.Meaningless as problem:
        return dry_run(request, operation, problem=str(problem))
    return HttpResponseRedirect(reverse("ops:operation", args=[operation.id]), status=303)


@require_POST
@requires(OPERATE, BULK)
def operation_pause(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Send no more for now."""
    return _do(
        request,
        operation_id,
        controls.pause,
        "The operation is paused. Items already sent are tracked to their end.",
    )


@require_POST
@requires(OPERATE, BULK)
def operation_resume(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Go on after a pause."""
    return _do(request, operation_id, controls.resume, "The operation resumed.")


@require_POST
@requires(OPERATE, BULK)
def operation_abort(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Send nothing more; before it began, this takes it back whole."""
    message = "The operation was aborted. Items already sent are tracked to their end."
    if or_404(operations.operation_by_id(operation_id)).started_at is None:
        message = "The operation was cancelled. Nothing was changed."
    return _do(request, operation_id, controls.abort, message)


@require_POST
@requires(OPERATE, APPROVE)
def operation_approve(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Approve an operation as the second person."""
    operation = or_404(operations.operation_by_id(operation_id))
    refusal = lifecycle.approve(operation.id, actor=person_of(request), reason=_reason(request))
    return _did(
        request, operation, refusal, "You approved the operation. It starts in a few seconds."
    )


def _do(request: HttpRequest, operation_id: int, doing: Doing, message: str) -> HttpResponse:
    operation = or_404(operations.operation_by_id(operation_id))
    refusal = doing(operation.id, actor=user_of(request).get_username(), reason=_reason(request))
    return _did(request, operation, refusal, message)


def _reason(request: HttpRequest) -> str:
    form = Word(request.POST)
    return form.cleaned_data["reason"] if form.is_valid() else ""


def _did(
    request: HttpRequest, operation: Operation, refusal: Refusal | None, message: str
) -> HttpResponse:
    if refusal:
        return _too_late(request, operation, refusal)
    return done(request, message, reverse("ops:operation", args=[operation.id]))


def _too_late(
    request: HttpRequest, operation: Operation, refusal: Refusal = Refusal.CHANGED
) -> HttpResponse:
    changed = refusal is Refusal.CHANGED
    advice = "Your action changed nothing." if changed else f"{refusal.value.capitalize()}."
    return conflict(
        request,
        what=f"operation {operation.id}",
        first=operations.last_action_on_operation(operation.id) if changed else None,
        advice=advice,
        back=(reverse("ops:operation", args=[operation.id]), f"Back to operation {operation.id}"),
        section="operations",
    )
