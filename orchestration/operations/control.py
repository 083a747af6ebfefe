"""What people do to an operation under way. Each is guarded: of two at once, the second is told."""

from collections.abc import Collection

from django.db import transaction

from .. import sql
from ..models import Operation
from ..models.fields import DatabaseNow
from ..models.operation import OperationState
from ..progression import Refusal
from .count import recount
from .told import ask_no_more, note

SKIP_WAITING = """
UPDATE orchestration_operationitem SET state = 'skipped', reason = %(why)s,
    ended_at = clock_timestamp()
WHERE operation_id = %(id)s AND state = 'waiting'
"""

# what an abort is called, by the state it meets
ABORTED = {
    OperationState.APPROVAL: ("refused", "it was not approved"),
    OperationState.WAITING: ("taken back", "it was taken back before it began"),
    OperationState.RUNNING: ("aborted", "it was aborted before its turn"),
    OperationState.PAUSED: ("aborted", "it was aborted before its turn"),
}


@transaction.atomic
def pause(operation_id: int, *, actor: str, reason: str = "") -> Refusal | None:
    """Send no more for now; return why not, or None when it was done."""
    operation = _locked(operation_id, [OperationState.RUNNING])
    if operation is None:
        return Refusal.CHANGED
    operation.state = OperationState.PAUSED
    operation.save(update_fields=["state"])
    note(operation, "paused", actor, reason)
    return None


@transaction.atomic
def resume(operation_id: int, *, actor: str, reason: str = "") -> Refusal | None:
    """Go on after a pause; return why not, or None when it was done."""
    operation = _locked(operation_id, [OperationState.PAUSED])
    if operation is None:
        return Refusal.CHANGED
    operation.state = OperationState.RUNNING
    operation.tokens, operation.paced_at = 0.0, DatabaseNow()
    operation.save(update_fields=["state", "tokens", "paced_at"])
    note(operation, "resumed", actor, reason)
    return None


@transaction.atomic
def abort(operation_id: int, *, actor: str, reason: str = "") -> Refusal | None:
    """Send nothing more; return why not, or None when it was done.

    Before it began, this takes it back whole. What was sent cannot be called back: it is followed
    to its end.
    """
    operation = _locked(operation_id, list(ABORTED))
    if operation is None:
        return Refusal.CHANGED
    what, why = ABORTED[OperationState(operation.state)]
    sql.run(SKIP_WAITING, {"id": operation.id, "why": why})
    operation.state = OperationState.ABORTED
    operation.save(update_fields=["state"])
    recount(operation)
    note(operation, what, actor, reason)
    ask_no_more(operation)
    return None


def _locked(operation_id: int, states: Collection[OperationState]) -> Operation | None:
    rows = Operation.objects.select_for_update(no_key=True)
    return rows.filter(id=operation_id, state__in=states).first()
