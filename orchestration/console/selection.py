"""What a selection means: the tasks that were chosen one by one, an incident's, or a search's."""

from typing import Any

from django.http import QueryDict

from ..models import Step, Task
from ..operations.items import SelectedTasks
from ..states import StepState
from .queries import task_filters, word_meanings
from .queries.search_query import read


class Meaningless(ValueError):
    """A search that cannot be understood; the text says what is wrong with it."""


def meaning(selection: dict[str, Any], *, personal: bool = True) -> SelectedTasks:
    """Return what a selection as it was given means now; raises `Meaningless`.

    Of what a search finds by its steps, or of an incident's tasks, only these steps are meant, not
    others of the same task that failed for another cause. `personal`: whether who asks may find
    tasks by personal data.
    """
    failed = Step.objects.filter(process_state=StepState.ERROR).order_by()
    if "incident" in selection:
        failed = failed.filter(incident=selection["incident"])
        return SelectedTasks(
            tasks=failed.values_list("task_id", flat=True),
            steps=failed.values_list("id", flat=True),
        )
    if "query" in selection:
        search = read(QueryDict(selection["query"]).dict(), personal=personal)
        if search.problems:
            raise Meaningless(" ".join(search.problems))
        query = word_meanings.resolved(search).query
        return SelectedTasks(tasks=task_filters.ids(query), steps=task_filters.failed_steps(query))
    tasks = Task.objects.filter(id__in=selection["tasks"]).order_by()
    return SelectedTasks(tasks=tasks.values_list("id", flat=True), explicit=True)
