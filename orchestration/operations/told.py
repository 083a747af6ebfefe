"""What others learn of operations: lines of history, as of all acts, and that somebody is needed."""

from .. import alerts
from ..models import Event, Operation
from ..models.alert import Severity
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


def ask_for_second_person(operation: Operation) -> None:
    """Alert whoever may approve a big operation; call it in the transaction that confirms it."""
    alerts.raise_alert(
        _asking(operation),
        severity=Severity.WARNING,
        title=f"{operation.actor} asks for a second person: {operation.get_act_display().lower()} "
        f"{operation.waiting:,} items",
        detail=f"{operation.approval}. Asked for because: {operation.reason}. Approve or refuse it: "
        f"operation {operation.id}.",
    )


def ask_no_more(operation: Operation) -> None:
    """Close that alert, if it is open."""
    alerts.close(_asking(operation))


def _asking(operation: Operation) -> str:
    return f"operation/{operation.id}"
