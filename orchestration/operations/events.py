"""Record the events of operations; raise the alert that asks for an approval."""

from ..alerting import alerts
from ..models import Event, Operation
from ..models.alert import Severity
from ..models.history import EventKind


def record_event(operation: Operation, what: str, actor: str, reason: str) -> None:
    """Record an action on an operation, with its counts; call it in the same transaction."""
    Event.objects.create(
        operation=operation, kind=EventKind.BULK, actor=actor, reason=reason,
        detail={
            "what": what, "act": operation.act, "rate": operation.rate,
            "money": operation.money, "forced": operation.forced, **operation.counts,
        },
    )  # fmt: skip


def request_approval(operation: Operation) -> None:
    """Raise the alert that asks for approval; call it in the transaction that confirms."""
    alerts.raise_alert(
        _fingerprint(operation),
        severity=Severity.WARNING,
        title=f"Approval needed: {operation.get_act_display().lower()} of {operation.waiting:,} "
        f"item{'' if operation.waiting == 1 else 's'}, created by {operation.actor}",
        detail=f"{operation.approval}. Reason: {operation.reason}. Approve or reject operation "
        f"{operation.id}.",
    )


def close_approval_request(operation: Operation) -> None:
    """Close the alert that asks for approval, if it is open."""
    alerts.close(_fingerprint(operation))


def _fingerprint(operation: Operation) -> str:
    return f"operation/{operation.id}"
