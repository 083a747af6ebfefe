"""Start a task by hand: the same submission that an application would post, and who did it and why."""

import re
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from django.db import transaction

from .. import registry
from ..database import sql
from ..models import Event, Task
from ..models.history import EventKind
from ..workflows.workflow import Workflow
from .submissions import Posting, submit_many
from .task_handle import TaskHandle

REFERENCE = re.compile(r"(hand|again|[\w.-]+/now)-[0-9a-f]{32}")
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%(reference)s, 0))"  # of one form, sent twice
PRIVATE = "Its tasks do not keep all of their input: what is private is only in the submission."


def new_reference(*, again: bool = False, schedule: str = "") -> str:
    """Return a reference for one form: however often that is sent, it starts one task.

    `schedule` is the name of the schedule whose task it is.
    """
    kind = f"{schedule}/now" if schedule else "again" if again else "hand"
    return f"{kind}-{uuid4().hex}"


def why_not(workflow: Workflow, *, again: bool = False) -> str:
    """Return why a workflow's tasks cannot be started by hand, as a sentence; empty if they can."""
    if workflow.not_by_hand:
        return workflow.not_by_hand
    return PRIVATE if again and workflow.private else ""


def start(
    workflow: str,
    reference: str,
    data: Mapping[str, Any],
    *,
    actor: str,
    reason: str,
    again: Task | None = None,
) -> bool:
    """Submit a task; return whether this did it, and not an earlier call with the same reference.

    `again` is the task whose input it has: its history names the new one. Raises what `submit_many` raises.
    """
    posting = Posting(
        workflow=workflow,
        reference=reference,
        data=dict(data),
        priority=again.priority if again else 0,
        fairness_key=again.fairness_key if again else "",
        about=_about(again) if again else None,
    )
    return start_posting(posting, actor=actor, reason=reason, again=again)


@transaction.atomic
def start_posting(posting: Posting, *, actor: str, reason: str, again: Task | None = None) -> bool:
    """Submit a task as `start` does, with all that a posting says of it."""
    workflow, reference = posting.workflow, posting.reference
    declared = registry.get(registry.workflows, "workflow", workflow)
    if refusal := why_not(declared, again=bool(again)) or declared.refuse_by_hand(posting.data):
        raise ValueError(refusal)
    sql.run(LOCK, {"reference": reference})
    if started(workflow, reference):
        return False
    submit_many([posting])
    Event.objects.create(
        task=again,
        kind=EventKind.STARTED,
        actor=actor,
        reason=reason,
        detail={
            "target": f"{workflow} {reference}",
            "workflow": workflow,
            "reference": reference,
        },
    )
    return True


def _about(again: Task) -> TaskHandle | None:
    """Return what the task whose input is taken is about, if that can be followed up still."""
    if again.about_workflow not in registry.workflows:
        return None
    return TaskHandle(again.about_workflow, again.about_reference)


def started(workflow: str, reference: str) -> Event | None:
    """Return who started a task by hand, when and why, if anybody did (along event_by_people)."""
    if not REFERENCE.fullmatch(reference):
        return None
    acts = Event.objects.filter(
        kind=EventKind.STARTED, detail__workflow=workflow, detail__reference=reference
    )
    return acts.select_related("task").defer("task__data").order_by("-at").first()
