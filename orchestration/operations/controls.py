"""Pause, resume and abort an operation; of two concurrent actions the second is refused."""

from collections.abc import Collection

from django.db import transaction

from ..database import sql
from ..decisions.progress import Refusal
from ..models import Operation
from ..models.fields import DatabaseNow
from ..models.operation import OperationState
from ..people import limits
from .counters import recount
from .events import close_approval_request, record_event

SKIP_WAITING = """
UPDATE orchestration_operationitem SET state = 'skipped', reason = %(why)s,
    ended_at = clock_timestamp()
WHERE operation_id = %(id)s AND state = 'waiting'
"""

# the event and the items' reason of an abort, by the state of the operation
ABORTED = {
    OperationState.APPROVAL: ("rejected", "it was not approved"),
    OperationState.WAITING: ("cancelled", "it was cancelled before it started"),
    OperationState.RUNNING: ("aborted", "it was aborted before its turn"),
    OperationState.PAUSED: ("aborted", "it was aborted before its turn"),
}


@transaction.atomic
def pause(operation_id: int, *, actor: str, reason: str = "") -> Refusal | None:
    """Send no more items for now; return the refusal, or None."""
    operation = _locked(operation_id, [OperationState.RUNNING])
    if operation is None:
        return Refusal.CHANGED
    operation.state = OperationState.PAUSED
    operation.save(update_fields=["state"])
    record_event(operation, "paused", actor, reason)
    return None


@transaction.atomic
def resume(operation_id: int, *, actor: str, reason: str = "") -> Refusal | None:
    """Continue after a pause; return the refusal, or None."""
    operation = _locked(operation_id, [OperationState.PAUSED])
    if operation is None:
        return Refusal.CHANGED
    operation.state = OperationState.RUNNING
    operation.tokens, operation.tokens_at = 0.0, DatabaseNow()
    operation.save(update_fields=["state", "tokens", "tokens_at"])
    record_event(operation, "resumed", actor, reason)
    return None


@transaction.atomic
def abort(operation_id: int, *, actor: str, reason: str = "") -> Refusal | None:
    """Send no more items; return the refusal, or None.

    Before the start this cancels the whole operation. Items that were sent are still followed to their
    end.
    """
    operation = _locked(operation_id, list(ABORTED))
    if operation is None:
        return Refusal.CHANGED
    what, why = ABORTED[OperationState(operation.state)]
    sql.run(SKIP_WAITING, {"id": operation.id, "why": why})
    operation.state = OperationState.ABORTED
    operation.save(update_fields=["state"])
    recount(operation)
    limits.refund_unused(operation)
    record_event(operation, what, actor, reason)
    close_approval_request(operation)
    return None


def _locked(operation_id: int, states: Collection[OperationState]) -> Operation | None:
    rows = Operation.objects.select_for_update(no_key=True)
    return rows.filter(id=operation_id, state__in=states).first()
