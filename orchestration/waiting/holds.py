"""Holds: what keeps steps from being claimed, and why."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q

from ..models import Hold
from ..models.hold import HoldCause, Scope

MOST = 200


@dataclass(frozen=True, kw_only=True)
class HoldsOnTasks:
    """The holds in force on some tasks, and on steps of any task."""

    by_task: Mapping[UUID, Hold]
    by_step: Mapping[tuple[str, str], Hold]

    def of(self, task: UUID, workflow: str, step: str) -> Hold | None:
        """Return the hold that keeps a step, other than one on its agent or on everything."""
        return self.by_task.get(task) or self.by_step.get((workflow, step))


def holds_on(tasks: Collection[UUID]) -> HoldsOnTasks:
    """Read the holds that keep steps of these tasks: one query."""
    holds = Hold.objects.filter(Q(task__in=tasks) | Q(scope=Scope.STEP), until=None)
    by_task: dict[UUID, Hold] = {}
    by_step: dict[tuple[str, str], Hold] = {}
    for hold in holds:
        if hold.task_id is not None:
            by_task[hold.task_id] = hold
        else:
            by_step[hold.workflow, hold.step] = hold
    return HoldsOnTasks(by_task=by_task, by_step=by_step)


def hold_by_id(hold_id: int) -> Hold | None:
    """Return a hold, in force or not."""
    return Hold.objects.select_related("task").filter(id=hold_id).first()


def hold_in_force(*, agent: str, workflow: str, step: str, task: UUID | None) -> Hold | None:
    """Return the hold by hand on exactly this target."""
    return Hold.objects.filter(
        agent=agent, workflow=workflow, step=step, task=task, cause=HoldCause.HAND, until=None
    ).first()


def holds_in_force() -> Sequence[Hold]:
    """Return the current holds, widest first, then newest; at most `MOST`."""
    holds = Hold.objects.filter(until=None).select_related("task").order_by("scope", "-since")
    return list(holds[:MOST])


def ended_holds() -> Sequence[Hold]:
    """Return the last holds that ended."""
    ended = Hold.objects.filter(until__isnull=False).select_related("task")
    return list(ended.order_by("-until")[:20])
