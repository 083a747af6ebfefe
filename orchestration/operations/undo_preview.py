"""Preview of an undo: its calls, the money they return, and the steps that cannot be undone."""

from typing import Any
from uuid import UUID

from ..decisions.compensation import plan, signature
from ..decisions.progress import RENAMED, StepView
from ..decisions.readiness import needs_person
from ..models import Step, Task
from ..payloads.keys import step_key
from ..states import Direction, StepState, TaskState

MOST = 20  # follow-ups that are named


def undo_preview(task_id: UUID) -> dict[str, Any] | None:
    """Return the preview as data, or None if the task is unknown.

    `calls` are in the order of the undo: {step, agent, action, key, after, amount, currency,
    settled_first, by_hand}; amounts are in minor units, and what is in doubt counts as done. What a
    person did by hand and only a person can undo is `by_hand`, in error until then. `net` is the
    sum by currency that goes back. `stands` names what cannot be undone, and why. `follow_ups` are tasks
    about this one, whose effects the undo may repeat, as it refunds what a return refunded: {id, workflow,
    reference, name, state, value, currency}, at most twenty. `seen` is what `transitions.undo` wants
    back, to know that nothing has changed since.
    """
    task = Task.objects.filter(id=task_id).defer("data").first()
    if task is None:
        return None
    columns = [RENAMED.get(name, name) for name in StepView.__struct_fields__ if name != "flow"]
    rows = Step.objects.filter(task=task_id).order_by("id")
    views = [StepView(*row) for row in rows.values_list(*columns)]
    charges = dict(rows.filter(direction=Direction.DO).values_list("name", "charges"))
    does = {view.name: view for view in views if view.direction == Direction.DO}
    undo_plan = plan(views)
    calls = [
        {
            "step": undo.name,
            "agent": undo.agent,
            "action": undo.action,
            "key": step_key(task_id, undo.name, Direction.UNDO, 1),
            "after": list(undo.after),
            "amount": (charges[undo.name] or {}).get("amount", 0),
            "currency": (charges[undo.name] or {}).get("currency", ""),
            "settled_first": does[undo.name].state != StepState.PROCESSED,
            "by_hand": needs_person(does[undo.name], undo.request),
        }
        for undo in sorted(undo_plan.undo, key=lambda undo: len(undo.after))
    ]
    net: dict[str, int] = {}
    for call in calls:
        if call["currency"]:
            net[str(call["currency"])] = net.get(str(call["currency"]), 0) + int(call["amount"])
    return {
        "calls": calls,
        "net": net,
        "cancelled": [
            does[view.name].name
            for view in views
            if view.id in undo_plan.cancel and view.state != StepState.CANCELLED
        ],
        "seen": signature(undo_plan),
        "stands": [{"step": step.name, "why": step.irreversible} for step in undo_plan.standing],
        "follow_ups": _follow_ups(task),
    }


def _follow_ups(task: Task) -> list[dict[str, Any]]:
    """Return what names the tasks about one, but for those that were undone."""
    rows = task.follow_ups.exclude(state=TaskState.UNDONE).defer("data")
    names = ("workflow", "reference", "name", "state", "value", "currency")
    return [
        {"id": str(other.id), **{name: getattr(other, name) for name in names}}
        for other in rows[:MOST]
    ]
