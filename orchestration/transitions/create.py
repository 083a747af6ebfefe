"""Tasks and steps come into being: nothing → pending or waiting (P5, P19, P20)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import DateTimeField, ExpressionWrapper, Value
from django.db.models.expressions import Combinable

from .. import registry, status
from ..models import Step, Task
from ..models.fields import DatabaseNow
from ..models.inbox import StatusKind
from ..progression import StepPlan, first_steps
from ..states import StepState


@dataclass(frozen=True, kw_only=True)
class NewTask:
    """What a submission asks for."""

    workflow: str
    reference: str
    data: dict[str, Any]
    reply_to: str = ""
    priority: int = 0


def create(new: Sequence[NewTask]) -> list[Task]:
    """Record tasks with all their steps and "received" messages, in the caller's transaction.

    Raises `NotRegistered` for an unknown workflow and `Unresolved` for an input that lacks a field
    some step's request takes: both before anything is written.
    """
    tasks: list[Task] = []
    steps: list[Step] = []
    for item in new:
        workflow = registry.get(registry.workflows, "workflow", item.workflow)
        plans = first_steps(workflow, item.data)
        task = Task(
            workflow=item.workflow,
            reference=item.reference,
            data=item.data,
            reply_to=item.reply_to,
            priority=item.priority,
            statuses=1 if item.reply_to else 0,
            complete_by=_from_now(workflow.time_allowed),
        )
        tasks.append(task)
        steps += [_step(task, plan) for plan in plans]
    Task.objects.bulk_create(tasks)
    Step.objects.bulk_create(steps)
    status.write_first([task for task in tasks if task.reply_to], StatusKind.RECEIVED)
    return tasks


def _step(task: Task, plan: StepPlan) -> Step:
    return Step(
        task=task,
        name=plan.name,
        agent=plan.agent,
        action=plan.action,
        after=list(plan.after),
        request=plan.request,
        process_state=StepState.PENDING if plan.ready else StepState.WAITING,
        priority=task.priority,
    )


def _from_now(seconds: float) -> Combinable:
    later = DatabaseNow() + Value(timedelta(seconds=seconds))
    return ExpressionWrapper(later, output_field=DateTimeField())
