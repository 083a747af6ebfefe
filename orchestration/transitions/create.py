"""Create tasks and their steps: nothing → pending or waiting (P5, P19, P20)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from .. import registry
from ..applications import outbox
from ..applications.outbox import StatusUpdate
from ..database import clock, prepared, sql
from ..decisions.progress import StepPlan
from ..models.fields import time_ordered_id
from ..models.inbox import StatusKind
from ..models.retention import content_hash
from ..payloads.limits import why_not_sent
from ..payloads.placeholders import resolve
from ..workflow import UNDECLARED, Refused, Workflow
from .new_steps import NewStep, inserting

# One statement for a whole batch, given as columns: a tenth of the processor time that the same rows take
# as model instances, and the submission process makes more rows than any other.
TASKS = f"""
INSERT INTO orchestration_task (id, workflow, reference, state, priority, fairness_key, data, posted,
    reply_to, owner_application, statuses, overdue, complete_by, clock_jumps, created_at, notify_steps, label,
    contact, value, currency)
SELECT id, workflow, reference, 'pending', priority, fairness_key, data, {content_hash("data")}, reply_to,
    owner_application, 0, false,
    clock_timestamp() + time_allowed * interval '1 second',
    (SELECT coalesce(sum(seconds), 0) FROM orchestration_clockjump), clock_timestamp(),
    EXISTS (SELECT 1 FROM orchestration_application a WHERE a.name = reply_to AND a.notify_steps),
    label, contact, value, currency
FROM unnest(%(ids)s::uuid[], %(workflows)s::text[], %(references)s::text[],
    %(priorities)s::smallint[], %(fairness_keys)s::text[], %(data)s::jsonb[], %(reply_to)s::text[],
    %(allowed)s::float8[], %(owner_applications)s::text[], %(labels)s::text[], %(contacts)s::text[],
    %(amounts)s::bigint[], %(currencies)s::text[])
    AS t (id, workflow, reference, priority, fairness_key, data, reply_to, time_allowed,
        owner_application, label, contact, value, currency)
"""  # noqa: S608 - put together from constants


@dataclass(frozen=True, kw_only=True)
class NewTask:
    """What a submission asks for; `id` only where the task had one before a restore."""

    workflow: str
    reference: str
    data: dict[str, Any]
    reply_to: str = ""
    priority: int = 0
    fairness_key: str = ""
    id: UUID | None = None


def create(new: Sequence[NewTask], also: Sequence[prepared.Part] = ()) -> list[UUID]:
    """Record tasks with all their steps and "received" messages, in the caller's transaction.

    `also` are statements of the same change, sent with it. Returns the tasks' ids, in order. Raises
    `NotRegistered` for an unknown workflow and `Unresolved` for an input that lacks fields: both before
    anything is written.
    """
    workflows = [registry.get(registry.workflows, "workflow", item.workflow) for item in new]
    ids = [item.id or time_ordered_id() for item in new]
    earliest = [workflow.earliest(item.data) for item, workflow in zip(new, workflows, strict=True)]
    plans = [
        NewStep(task, item.priority, item.fairness_key, plan, after if plan.ready else None)
        for task, item, workflow, after in zip(ids, new, workflows, earliest, strict=True)
        for plan in first_steps(workflow, item.data)
    ]
    cards = [workflow.card(item.data) for item, workflow in zip(new, workflows, strict=True)]
    tasks = prepared.Part(
        TASKS,
        {
            "ids": [str(task) for task in ids],
            "workflows": [item.workflow for item in new],
            "references": [item.reference for item in new],
            "priorities": [item.priority for item in new],
            "fairness_keys": [item.fairness_key for item in new],
            "data": sql.as_json([item.data for item in new]),
            "reply_to": [item.reply_to for item in new],
            "allowed": [
                workflow.time_allowed + _delay(after)
                for workflow, after in zip(workflows, earliest, strict=True)
            ],
            "owner_applications": [workflow.owner_application for workflow in workflows],
            "labels": [card.label for card in cards],
            "contacts": [card.contact for card in cards],
            "amounts": [card.amount for card in cards],
            "currencies": [card.currency for card in cards],
        },
    )
    prepared.run_all([tasks, *inserting(plans), *also])
    outbox.write(
        [
            StatusUpdate(task=task, kind=StatusKind.RECEIVED)
            for task, item, workflow in zip(ids, new, workflows, strict=True)
            if item.reply_to or workflow.owner_application
        ],
        [task for task, workflow in zip(ids, workflows, strict=True) if workflow.owner_application],
    )
    return ids


def _delay(after: datetime | None) -> float:
    """Return the seconds until a task may begin."""
    return 0.0 if after is None else max(0.0, after.timestamp() - clock.now())


def first_steps(workflow: Workflow, data: Mapping[str, Any]) -> list[StepPlan]:
    """Return the steps of a new task; raise `Unresolved` if `data` lacks fields that it takes.

    Raises `Refused` if a first request would be too large to be sent. The templates of waiting steps
    are kept as they are: a value of the input is put in only when the request is built, so that no
    input can pose as a placeholder.
    """
    workflow.require(data)
    plans = []
    for step in workflow.steps:
        ready = not step.after
        request = resolve(step.request, data, {}) if ready else step.request
        if ready and (reason := why_not_sent(request)):
            raise Refused(f"the request of {step.name} cannot be sent: {reason}")
        undo = "" if step.undo in {None, UNDECLARED} else str(step.undo)
        plans.append(
            StepPlan(
                name=step.name,
                agent=step.agent,
                action=step.action,
                after=step.after,
                request=request,
                ready=ready,
                undo_action=undo,
                undo_request=step.undo_request if undo else None,
                irreversible=step.irreversible,
                charges=resolve(step.charges, data, {}),
                loads=step.loads,
            )
        )
    return plans
