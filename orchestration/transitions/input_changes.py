"""Change the input of a running task, for the steps that have not used it yet."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction

from ..agents import payload_schemas
from ..applications.outbox import StatusUpdate
from ..decisions.input_change import InputChange, TakenBy, Templates, input_change
from ..decisions.progress import Refusal
from ..decisions.readiness import why_not_stored
from ..models.history import EventKind
from ..models.inbox import StatusKind
from ..payloads.placeholders import Unresolved, placeholders
from ..states import FINAL_TASK_STATES
from ..workflows.workflow import Workflow
from . import moves
from .amendments import amend
from .change import Change
from .locked_task import lock
from .settle import finish

MISSING = object()


@transaction.atomic
def change_input(
    task: UUID,
    workflow: Workflow,
    data: Mapping[str, Any],
    *,
    actor: str,
    reason: str,
    seen: Mapping[str, Any] | None = None,
) -> Refusal | TakenBy | None:
    """Replace fields of a task's input by name; return why not, or None when it was done.

    `seen` is the input that it had when this was decided: if it has another by now, nothing happens.
    Requests that were built and never sent are built again. Raises `payload_schemas.Invalid` and `Refused`
    for an input that the task cannot have.
    """
    change = lock([task]).get(task)
    if change is None:
        return Refusal.NO_SUCH_TASK
    if refusal := _refusal(change, seen):
        return refusal
    after = {**change.data, **data}
    _check(workflow, data, after)
    if workflow.earliest(after) != workflow.earliest(change.data):
        return TakenBy(tuple(step.name for step in workflow.steps if not step.after))
    follows = _follows(change, workflow, after)
    if follows.taken:
        return TakenBy(tuple(sorted(follows.taken)))
    _write(change, workflow, follows, after, actor=actor, reason=reason)
    return None


def templates(workflow: Workflow) -> dict[str, Templates]:
    """Return what a workflow declares of its steps, by name: of one with children, the inputs of all."""
    return {step.name: Templates(step.template, step.charges) for step in workflow.steps}


def _refusal(change: Change, seen: Mapping[str, Any] | None) -> Refusal | None:
    """Return why a locked task has no input that can change, or not the one that was `seen`."""
    if change.state in FINAL_TASK_STATES:
        return Refusal.ENDED
    if change.undoing:
        return Refusal.UNDOING
    return Refusal.CHANGED if seen is not None and seen != change.data else None


def _check(workflow: Workflow, data: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    if private := sorted(set(workflow.private) & data.keys()):
        raise payload_schemas.Invalid(f"its tasks do not keep {', '.join(private)}")
    try:
        workflow.require(after)
    except Unresolved as error:
        raise payload_schemas.Invalid(str(error)) from None


def _follows(change: Change, workflow: Workflow, after: Mapping[str, Any]) -> InputChange:
    """Return what the change means for the task's steps; raise `Invalid` for what cannot be sent."""
    try:
        follows = input_change(change.steps.values(), templates(workflow), change.data, after)
    except Unresolved as error:
        raise payload_schemas.Invalid(str(error)) from None
    for released in follows.rebuilt:
        step = change.steps[released.id]
        payload_schemas.check_declared(step, released.request)
        if why := why_not_stored(step, released.request):
            raise payload_schemas.Invalid(why)
    return follows


def _write(
    change: Change,
    workflow: Workflow,
    follows: InputChange,
    after: Mapping[str, Any],
    *,
    actor: str,
    reason: str,
) -> None:
    before = change.data
    fields = sorted(name for name in after if before.get(name, MISSING) != after[name])
    for released in follows.rebuilt:
        step = change.steps[released.id].altered(request=released.request)
        change.move(moves.REBUILT, step, request=released.request)
    amend(change, {name: after[name] for name in fields})
    shown = [name for name in fields if name not in _personal(workflow)]
    change.note(
        None, EventKind.AMENDED, by=actor, reason=reason, fields=fields,
        before={name: before[name] for name in shown if name in before},
        after={name: after[name] for name in shown},
    )  # fmt: skip
    news = StatusUpdate(task=change.id, kind=StatusKind.AMENDED, detail={"fields": fields})
    change.updates.append(news)
    finish([change], by=actor)


def _personal(workflow: Workflow) -> set[str]:
    """Return the fields of the input that have anything personal: the history keeps none of their values.

    What is hidden on pages is found by the present input, so a former value would be shown.
    """
    paths = (
        path
        for template in [workflow.contact, *workflow.personal]
        for path in placeholders(template)
    )
    return {names[0] for origin, *names in paths if not origin and names}
