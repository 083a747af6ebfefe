"""What staff correct of the stock: goods that came in, were counted, or are gone.

A correction is a row, and a task that has the inventory change its stock once. What was counted is held
against what should have lain there: the inventory refuses it if goods were sent or came meanwhile.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from orchestration import api
from orders.lifecycle.message import APPLICATION
from orders.models import StockCorrection
from orders.models.stock import CorrectionKind, CorrectionState

from .levels import CORRECTING, Reported, step_of

ADJUST = "adjust"  # the step
LONGEST_REFUSAL = 200  # characters
# once per correction, however often its messages come
SETTLE = """
UPDATE orders_stockcorrection c SET state = i.state, change = i.change, refusal = i.refusal
FROM unnest(%(ids)s::uuid[], %(states)s::text[], %(changes)s::bigint[], %(refusals)s::text[])
    AS i (id, state, change, refusal)
WHERE c.id = i.id AND c.state = 'asked'
"""


@dataclass(frozen=True, kw_only=True)
class Correction:
    """What staff say; `expected` is what should have lain there, of a count alone."""

    id: UUID
    sku: str
    warehouse: str
    kind: CorrectionKind
    units: int
    reason: str
    expected: int | None = None


@transaction.atomic
def correct(asked: Correction, *, by: int | None, name: str) -> bool:
    """Note a correction and post its task; return whether it is new: the same `id` counts once."""
    values = {
        "product_id": asked.sku,
        "warehouse": asked.warehouse,
        "kind": asked.kind,
        "units": asked.units,
        "expected": asked.expected,
        "reason": asked.reason,
        "by_id": by,
    }
    _, is_new = StockCorrection.objects.get_or_create(id=asked.id, defaults=values)
    if is_new:
        data: dict[str, Any] = {
            "sku": asked.sku,
            "warehouse": asked.warehouse,
            "kind": asked.kind.value,
            "units": -asked.units if asked.kind is CorrectionKind.REMOVED else asked.units,
            "expected": asked.expected,
            "reason": asked.reason,
            "by": name,
        }
        api.submit(CORRECTING, reference=str(asked.id), data=data, reply_to=APPLICATION)
    return is_new


def receive(reported: Iterable[Reported]) -> None:
    """Settle the corrections whose tasks have ended or made them (one statement for any number)."""
    ends = [
        (message.reference, *_end(progress))
        for message, progress in reported
        if message.workflow == CORRECTING
    ]
    settled = [end for end in ends if end[1] is not CorrectionState.ASKED]
    if settled:
        names = ("ids", "states", "changes", "refusals")
        columns = map(list, zip(*settled, strict=True))
        with connection.cursor() as cursor:
            cursor.execute(SETTLE, dict(zip(names, columns, strict=True)))


def _end(progress: api.Progress) -> Sequence[Any]:
    """Return how a correction stands by its task: state, change and why it was refused."""
    step = step_of(progress, ADJUST)
    if step.state is api.StepState.PROCESSED:
        return CorrectionState.MADE, (step.result or {}).get("change"), ""
    if step.state is api.StepState.SKIPPED:
        refusal = step.error_message or step.error_code
        return CorrectionState.REFUSED, None, refusal[:LONGEST_REFUSAL]
    if progress.state is api.TaskState.UNDONE:
        return CorrectionState.UNDONE, None, ""
    return CorrectionState.ASKED, None, ""
