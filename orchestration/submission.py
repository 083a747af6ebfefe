"""The submission process: durable submissions become orders *and* tasks, in one transaction (P19).

A batch normally goes through as a whole. If anything in it cannot be taken, the batch is rolled
back and taken in parts, so that a bad submission is set aside, with the reason, and never holds up
the others.
"""

import logging
from collections.abc import Sequence

from django.db import transaction
from django.db.models import QuerySet

from . import alerts, batches, crashpoints, registry
from .models import Submission, Task
from .models.alert import Severity
from .models.fields import DatabaseNow
from .transitions import NewTask, create
from .workflow import Refused, Submitted

logger = logging.getLogger(__name__)


def take(limit: int) -> int:
    """Turn up to `limit` submissions into tasks, oldest first; return how many were dealt with."""
    crashpoints.reached("submission.before_transaction")
    return batches.take(_waiting(), limit, _take, _set_aside)


def _waiting() -> QuerySet[Submission]:
    return Submission.objects.filter(refused_at=None).order_by("id")


@transaction.atomic
def _take(some: QuerySet[Submission]) -> int:
    return _accept(list(some.select_for_update(skip_locked=True)))


def _accept(submissions: Sequence[Submission]) -> int:
    """Record new ones and forget them all; one that is there already changes nothing."""
    known = _known(submissions)
    fresh: list[Submission] = []
    for submission in submissions:
        data = known.get((submission.workflow, submission.reference))
        if data is None:
            fresh.append(submission)
        elif data != submission.data:
            raise Refused("its reference is taken by a task with other content")
    for name in sorted({submission.workflow for submission in fresh}):
        batch = [submission for submission in fresh if submission.workflow == name]
        workflow = registry.get(registry.workflows, "workflow", name)
        for submission in batch:
            if not isinstance(submission.data, dict):
                raise Refused("its data is not a JSON object")
        workflow.record([Submitted(reference=one.reference, data=one.data) for one in batch])
        create([_as_task(submission) for submission in batch])
    Submission.objects.filter(id__in=[submission.id for submission in submissions]).delete()
    crashpoints.reached("submission.before_commit", submissions)
    transaction.on_commit(lambda: crashpoints.reached("submission.after_commit", submissions))
    return len(submissions)


def _known(submissions: Sequence[Submission]) -> dict[tuple[str, str], object]:
    """Return the input of the tasks that exist already, by workflow and reference."""
    rows = Task.objects.filter(reference__in=[one.reference for one in submissions])
    return {
        (workflow, reference): data
        for workflow, reference, data in rows.values_list("workflow", "reference", "data")
    }


def _as_task(submission: Submission) -> NewTask:
    return NewTask(
        workflow=submission.workflow,
        reference=submission.reference,
        data=submission.data,
        reply_to=submission.reply_to,
        priority=submission.priority,
    )


@transaction.atomic
def _set_aside(submission_id: int, error: Exception) -> None:
    reason = str(error).strip() or type(error).__name__
    submission = _waiting().filter(id=submission_id).select_for_update().first()
    if submission is None:
        return  # another process could take it meanwhile
    submission.refused_at = DatabaseNow()
    submission.reason = reason
    submission.save(update_fields=["refused_at", "reason"])
    alerts.raise_alert(
        f"submission/{submission.workflow}"[:300],
        severity=Severity.CRITICAL,
        title=f"{submission.workflow}: a submission was set aside"[:300],
        detail=reason,
    )
    logger.error("submission %s was set aside: %s", submission.reference, reason)
