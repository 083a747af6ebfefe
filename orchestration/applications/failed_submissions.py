"""Set refused submissions aside, and postpone those that fail otherwise: a deploy may be under way."""

from collections.abc import Sequence

from django.db import transaction

from .. import registry
from ..alerting import failures
from ..database.lane import Problem
from ..models import Submission
from ..models.inbox import SUBMISSIONS, StatusKind
from . import outbox

READ = ("workflow", "reference", "reply_to", "owner_application")  # else it may be unreadable


def put_off_unknown(name: str, batch: Sequence[Submission]) -> list[int]:
    """Postpone submissions of an unknown workflow; return their ids."""
    ids = [submission.id for submission in batch]
    reason = f"there is no workflow {name!r}{registry.suggest(name, registry.workflows)}"
    failures.fail(SUBMISSIONS, ids, reason, problem=Problem.UNKNOWN)
    return ids


@transaction.atomic
def fail(submission_id: int, error: Exception) -> None:
    """Set a refused submission aside, and notify; postpone it after any other failure."""
    failed = failures.fail(SUBMISSIONS, [submission_id], error)
    refused = Submission.objects.filter(
        id__in=[failure.id for failure in failed if failure.refused]
    )
    outbox.write_without_task(refused.only(*READ), StatusKind.SET_ASIDE)
