"""What a selection means: the tasks that were chosen one by one, an incident's, or a search's."""

from typing import Any

from ..models import Step, Task
from ..states import StepState
from .selection import Chosen


def meaning(selection: dict[str, Any]) -> Chosen:
    """Return what a selection as it was given means now."""
    if "incident" in selection:
        failed = Step.objects.filter(
            incident=selection["incident"], process_state=StepState.ERROR
        ).order_by()
        return Chosen(
            tasks=failed.values_list("task_id", flat=True),
            steps=failed.values_list("id", flat=True),
        )
    tasks = Task.objects.filter(id__in=selection["tasks"]).order_by()
    return Chosen(tasks=tasks.values_list("id", flat=True), explicit=True)
