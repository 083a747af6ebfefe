"""Apply what an application changes with a resubmit: request and task input."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .. import registry
from ..decisions.progress import StepView
from ..incidents import tallies
from ..models import Task
from ..payloads.placeholders import resolve
from ..states import StepState
from .change import Change
from .step_update import StepUpdate, require

CHARGED = StepUpdate("charges = r.charges", charges="jsonb")  # of a step to come: what it moves


def is_unsent(step: StepView) -> bool:
    """Return whether what a step moves may still be another amount."""
    unsent = step.attempt == 0 and step.state in {StepState.PENDING, StepState.AWAITING}
    return unsent or step.state == StepState.WAITING


def amend(change: Change, data: Mapping[str, Any]) -> None:
    """Change a locked task's input, by name; what its steps to come take from it changes with it."""
    if not data:
        return
    change.data = {**change.data, **data}
    declared = registry.workflows.get(change.workflow)
    values = asdict(declared.card(change.data)) if declared else {}
    card = {"value" if name == "amount" else name: value for name, value in values.items()}
    with tallies.revalue(change.id):
        task = Task.objects.filter(id=change.id, state=change.state)
        require(task.update(data=change.data, **card), 1)
    charges = (
        {step.name: step.charges for step in declared.steps if step.charges} if declared else {}
    )
    for step in change.steps.values():
        if is_unsent(step) and step.name in charges:
            change.move(CHARGED, step, charges=resolve(charges[step.name], change.data, {}))
