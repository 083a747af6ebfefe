"""What people did to operations: lines of history, as all acts are."""

from ..models import Event, Operation
from ..models.history import EventKind


def note(operation: Operation, what: str, actor: str, reason: str) -> None:
    """Keep who did what to an operation, and how it stood then; call it in the same transaction."""
    Event.objects.create(
        operation=operation, kind=EventKind.BULK, actor=actor, reason=reason,
        detail={
            "what": what, "act": operation.act, "rate": operation.rate,
            "money": operation.money, "forced": operation.forced, **operation.counts,
        },
    )  # fmt: skip
