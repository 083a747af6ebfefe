"""What a selection means: the tasks that were chosen one by one, an incident's, or a search's."""

from typing import Any

from django.http import QueryDict

from .. import queries
from ..models import Step, Task
from ..states import StepState
from .selection import Chosen


class Meaningless(ValueError):
    """A search that cannot be understood; the text says what is wrong with it."""


def meaning(selection: dict[str, Any], *, personal: bool = True) -> Chosen:
    """Return what a selection as it was given means now; raises `Meaningless`.

    Of what a search finds by its steps, or of an incident's tasks, only these steps are meant, not
    others of the same task that failed for another cause. `personal`: whether who asks may find
    tasks by personal data.
    """
    failed = Step.objects.filter(process_state=StepState.ERROR).order_by()
    if "incident" in selection:
        failed = failed.filter(incident=selection["incident"])
        return Chosen(
            tasks=failed.values_list("task_id", flat=True),
            steps=failed.values_list("id", flat=True),
        )
    if "query" in selection:
        search = queries.read(QueryDict(selection["query"]).dict(), personal=personal)
        if search.problems:
            raise Meaningless(" ".join(search.problems))
        found = queries.matching(search.filters).order_by()
        steps = queries.standing(search.filters).order_by() if search.filters.standing else None
        return Chosen(
            tasks=found.values_list("id", flat=True),
            steps=None if steps is None else steps.values_list("id", flat=True),
        )
    tasks = Task.objects.filter(id__in=selection["tasks"]).order_by()
    return Chosen(tasks=tasks.values_list("id", flat=True), explicit=True)
