"""Apply what an application changes with a resubmit: request and task input."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .. import registry
from ..incidents import tallies
from ..models import Task
from ..payloads.placeholders import resolve
from ..states import StepState
from .change import Change
from .step_update import StepUpdate, require

CHARGED = StepUpdate("charges = r.charges", charges="jsonb")  # of a step to come: what it moves
LONGEST_WAIT = 315_576_000  # seconds: ten years


@dataclass(frozen=True, kw_only=True)
class Amendment:
    """What an application changes as it resubmits a step: values by name; `wait` in seconds.

    `request` is of the step itself, `data` of the task's input, for the steps to come. `wait` is
    how long it must not be claimed yet. As long as it is then refused for the same reason, it waits
    for that long again, for `patience` seconds in all; after that a refusal is what the policy says.

    >>> Amendment(request={"to": "Eva"}, wait=3600.0).data
    {}
    """

    request: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    wait: float = 0.0
    patience: float = 0.0

    def __post_init__(self) -> None:
        """Refuse times that no row can have, or no page can show."""
        for name in ("wait", "patience"):
            seconds = getattr(self, name)
            if not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_WAIT:
                raise ValueError(f"{name} is {seconds!r}, not 0 to {LONGEST_WAIT:,} seconds")


NOTHING = Amendment()


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
        if step.state == StepState.WAITING and step.name in charges:
            change.move(CHARGED, step, charges=resolve(charges[step.name], change.data, {}))
