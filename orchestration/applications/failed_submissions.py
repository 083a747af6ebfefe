"""Set refused submissions aside, and postpone those that fail otherwise: a deploy may be under way."""

import logging
from collections.abc import Sequence

from django.db import transaction

from .. import registry
from ..alerting import alerts
from ..database import batches, sql
from ..models import Submission
from ..models.alert import Severity
from ..models.fields import DatabaseNow
from ..models.inbox import Problem, StatusKind
from ..tracing.subject import about_reference
from ..workflow import Refused
from . import outbox

logger = logging.getLogger(__name__)

POSTPONE = f"""
UPDATE orchestration_submission SET tries = least(tries + 1, 32767), problem = %(problem)s,
    reason = %(reason)s, retry_at = clock_timestamp() + {batches.WAIT}
WHERE id = ANY(%(ids)s) AND refused_at IS NULL
RETURNING tries
"""  # noqa: S608 - put together from constants


def put_off_unknown(name: str, batch: Sequence[Submission]) -> list[int]:
    """Postpone submissions of an unknown workflow; return their ids."""
    ids = [submission.id for submission in batch]
    reason = f"there is no workflow {name!r}{registry.suggest(name, registry.workflows)}"
    _put_off(name, ids, Problem.UNKNOWN, reason)
    return ids


@transaction.atomic
def fail(submission_id: int, error: Exception) -> None:
    """Set a refused submission aside; postpone it after any other failure."""
    # without its data, which may be why it failed
    rows = Submission.objects.filter(id=submission_id, refused_at=None).defer("data")
    submission = rows.select_for_update().first()
    if submission is None:
        return  # another process could take it meanwhile
    if not isinstance(error, Refused):
        reason = f"{type(error).__name__}: {sql.first_line(error)}"
        _put_off(submission.workflow, [submission_id], Problem.FAILING, reason)
        return
    reason = sql.storable(str(error)) or "refused"
    rows.update(refused_at=DatabaseNow(), retry_at=None, problem="", reason=reason)
    outbox.write_without_task([submission], StatusKind.SET_ASIDE)
    alerts.raise_alert(
        f"submission/{submission.workflow}",
        severity=Severity.CRITICAL,
        title=f"{submission.workflow}: a submission was refused",
        detail=reason,
    )
    about = about_reference(submission.workflow, submission.reference)
    logger.error("submission %s was refused: %s", submission.reference, reason, extra=about)


def _put_off(workflow: str, ids: Sequence[int], problem: Problem, reason: str) -> None:
    """Have locked submissions wait for their next try, longer each time."""
    tries = sql.run(POSTPONE, {"ids": list(ids), "problem": problem.value, "reason": reason})
    what = {
        Problem.FAILING: f"{workflow}: submissions fail",
        Problem.UNKNOWN: f"{workflow}: submissions of an unknown workflow",
    }
    alerts.raise_retrying(
        "submission", workflow, problem.value, what[problem], reason, max(n for (n,) in tries)
    )
    logger.warning("%d of %s wait for their next try: %s", len(ids), workflow, reason)
