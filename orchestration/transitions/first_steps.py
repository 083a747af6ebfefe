"""Plan the steps of new tasks: which begin at once, which wait, and which are not needed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import structs

from ..database import clock
from ..decisions.flow import Flow
from ..decisions.progress import StepPlan, StepView
from ..decisions.readiness import release
from ..payloads.limits import why_not_sent
from ..payloads.placeholders import Unresolved, resolve
from ..states import StepState
from ..workflows.step import Step
from ..workflows.workflow import Refused, Workflow
from . import waits


def first_steps(
    workflow: Workflow, data: Mapping[str, Any], task: UUID, earliest: datetime | None = None
) -> list[StepPlan]:
    """Return the steps of a new task; raise `Unresolved` if `data` lacks fields that it takes.

    Raises `Refused` if a first request would be too large to be sent. A first step whose condition does not
    hold is skipped, and so may be what comes after it. The templates of waiting steps
    are kept as they are: a value of the input is put in only when the request is built, so that no
    input can pose as a placeholder. None begins before the `earliest` time: of a pending one, that is the
    caller's to write.
    """
    workflow.require(data)
    later = earliest if earliest and earliest > clock.utc_now() else None
    plainly = workflow.begins_plainly and not (later and workflow.begins_awaiting)
    plans = []
    for step in workflow.steps:
        is_first = plainly and not step.after
        request = resolve(step.template, data, {}) if is_first else step.template
        if is_first and not step.workflow and (reason := why_not_sent(request)):
            raise Refused(f"the request of {step.name} cannot be sent: {reason}")
        plans.append(
            StepPlan(
                name=step.name,
                agent=step.agent,
                action=step.action,
                after=step.after,
                request=request,
                state=_begins(step) if is_first else StepState.WAITING,
                undo_action=step.undo_action,
                undo_request=step.undo_request if step.undo_action else None,
                irreversible=step.irreversible,
                charges=resolve(step.charges, data, {}),
                loads=step.loads,
                flow=step.flow,
            )
        )
    if plainly:
        return plans
    views = [view(number, task, plan) for number, plan in enumerate(plans)]
    if later:
        views = [_not_before(later, each, data) for each in views]
    return _begun(workflow, plans, views, data)


def view(number: int, task: UUID, plan: StepPlan) -> StepView:
    """Return a step to be as decisions see it."""
    return StepView(
        id=number, task=task, name=plan.name, agent=plan.agent, state=plan.state, after=plan.after,
        attempt=0, locked_by=None, request=plan.request, result=None, flow=plan.flow,
        undo_action=plan.undo_action,
    )  # fmt: skip


def _begins(step: Step) -> StepState:
    """Return as what a step begins that comes after no other."""
    return StepState.AWAITING if step.is_awaited else StepState.PENDING


def _not_before(earliest: datetime, step: StepView, data: Mapping[str, Any]) -> StepView:
    """Return a step that, if it is a first one, does not begin before the earliest time of its task."""
    until = None if step.after else _until(step, [step], data)
    if step.after or (until and until.at > earliest):
        return step
    return step.altered(flow=structs.replace(step.flow or Flow(), not_before=earliest.isoformat()))


def _until(
    step: StepView, steps: Sequence[StepView], data: Mapping[str, Any]
) -> waits.Until | None:
    try:
        return waits.begins_at(step, steps, data)
    except Unresolved as error:
        raise Refused(f"it is not known when {step.name} may begin: {error}") from None


def _begun(
    workflow: Workflow,
    plans: Sequence[StepPlan],
    views: Sequence[StepView],
    data: Mapping[str, Any],
) -> list[StepPlan]:
    """Return the steps of a new task, some of them skipped; those that may start have their requests."""
    times: dict[int, bool] = {}
    changes: dict[int, dict[str, Any]] = {each.id: {"flow": each.flow} for each in views}
    while untimed := (follows := release(views, data, undoing=False, times=times)).untimed:
        for number in untimed:
            until = _until(views[number], views, data)
            times[number] = until is None
            changes[number]["until"] = until
    for problem in follows.broken:
        raise Refused(f"the request of {plans[problem.id].name} cannot be built: {problem.reason}")
    for number in follows.skipped:
        changes[number]["state"] = StepState.SKIPPED
    for step in follows.released:
        begins = _begins(workflow.steps[step.id])
        changes[step.id] |= {"state": begins, "request": step.request}
    return [replace(plan, **changes[number]) for number, plan in enumerate(plans)]
