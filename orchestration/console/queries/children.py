"""The children of a task's steps, as its page shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Case, Count, Q, When

from ...models import Step, Task
from ...states import TaskState

MOST_CHILDREN = 20  # of a step; the list of tasks has all


@dataclass(frozen=True, kw_only=True)
class Children:
    """The children of a step: how many are in each state, and the first of them, those in error before."""

    states: Mapping[str, int]
    first: Sequence[Task]

    @property
    def count(self) -> int:
        """Return how many there are."""
        return sum(self.states.values())


def children_of(steps: Sequence[Step]) -> dict[int, Children]:
    """Return the children of each step that may have some; no query if none may (task_of_parent)."""
    makers = [step.id for step in steps if (step.flow or {}).get("workflow") and step.attempt]
    children = {}
    for step in makers:
        rows = Task.objects.filter(parent=step)
        states = dict(rows.order_by("state").values_list("state").annotate(Count("id")))
        if states:
            in_error = Q(state=TaskState.ERROR)
            first = rows.order_by(Case(When(in_error, then=0), default=1), "position", "id")
            children[step] = Children(
                states=states, first=list(first.defer("data", "result")[:MOST_CHILDREN])
            )
    return children
