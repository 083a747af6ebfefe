"""Count the items of an operation by state; end it when all of them have ended."""

from ..database import sql
from ..models import Operation
from ..models.fields import DatabaseNow
from ..models.operation import OPEN_ITEMS, ItemState, OperationState

COUNT = """
SELECT state, count(*) FROM orchestration_operationitem WHERE operation_id = %(id)s GROUP BY state
"""


WHY = """
SELECT reason, count(*) FROM orchestration_operationitem
WHERE operation_id = %(id)s AND state = 'skipped' GROUP BY reason ORDER BY count(*) DESC LIMIT 5
"""


def recount(operation: Operation) -> None:
    """Recount the items of a locked operation; end it if all of them have ended.

    The counts of a running operation may be a moment old; those of an ended one are exact.
    """
    counts = dict(sql.run(COUNT, {"id": operation.id}))
    operation.items = sum(counts.values())
    fields = ["items", *ItemState.values]
    if counts.get(ItemState.SKIPPED.value, 0) != operation.skipped:
        operation.why = dict(sql.run(WHY, {"id": operation.id}))
        fields += ["why"]
    for state in ItemState:
        setattr(operation, state.value, counts.get(state.value, 0))
    begun = operation.state in {
        OperationState.RUNNING, OperationState.PAUSED, OperationState.ABORTED,
    }  # fmt: skip
    if begun and not any(counts.get(state.value) for state in OPEN_ITEMS):
        if operation.state != OperationState.ABORTED:
            operation.state = OperationState.ENDED
        operation.ended_at = DatabaseNow()
        fields += ["state", "ended_at"]
    operation.save(update_fields=fields)
