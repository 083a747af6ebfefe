"""Start an operation: dry run, confirmation, and approval where one is needed."""

from datetime import timedelta
from typing import Any

from django.db import transaction

from .. import conf
from ..decisions.progress import Refusal
from ..models import Operation, SupervisorPolicy
from ..models.fields import DatabaseNow
from ..models.operation import Act, OperationState
from ..payloads.money import format_money
from .counters import recount
from .events import close_approval_request, record_event, request_approval
from .items import SelectedTasks, freeze, frozen_money, preview_figures


class _RolledBack(Exception):
    """Rolls a confirmation back; carries the refusal."""

    def __init__(self, why: Refusal) -> None:
        super().__init__(why.value)
        self.why = why


def draft(
    act: Act,
    selection: dict[str, Any],
    chosen: SelectedTasks,
    *,
    actor: str,
    incident: int | None = None,
    sample: int | None = None,
) -> Operation:
    """Create the dry run of an action on a selection; only this row is written.

    `selection` is stored as it was given; `chosen` are the tasks that it selects.
    """
    return Operation.objects.create(
        act=act, selection=selection, sample=sample, actor=actor, incident_id=incident,
        forced=chosen.forced, preview=preview_figures(act, chosen),
    )  # fmt: skip


def preview(operation: Operation, chosen: SelectedTasks) -> None:
    """Refresh a dry run: its selection may have changed."""
    drafts = Operation.objects.filter(id=operation.id, state=OperationState.DRAFT)
    drafts.update(
        preview=preview_figures(Act(operation.act), chosen),
        forced=chosen.forced,
        created_at=DatabaseNow(),
    )


def confirm(
    operation_id: int,
    chosen: SelectedTasks,
    *,
    actor: str,
    reason: str,
    rate: float,
    sample: int | None = None,
    result: dict[str, Any] | None = None,
) -> Refusal | None:
    """Freeze the items of a dry run and schedule its start; return the refusal, or None.

    `sample` limits the number of items; `result` is the result of steps done by hand.

    It starts after `conf.OPERATION_GRACE_S` seconds. Above the size or sum that admins set, it starts after
    a second person has approved it. If more items are eligible than the dry run showed, nothing is
    written.
    """
    try:
        with transaction.atomic():
            operation = _locked(operation_id)
            if operation is None or operation.state != OperationState.DRAFT:
                return Refusal.CHANGED
            if operation.forced != chosen.forced:
                return Refusal.CHANGED  # what was shown is not what would be done
            eligible = operation.preview["eligible"]
            seen = eligible if chosen.most is None else min(chosen.most, eligible)
            if eligible + sum(operation.preview["skipped"].values()) > conf.MAX_OPERATION_ITEMS:
                return Refusal.TOO_MANY
            operation.sample, operation.result = sample, result
            freeze(operation, chosen)
            recount(operation)
            _require(operation.waiting > 0, Refusal.NOTHING_TO_DO)
            _require(operation.waiting <= seen, Refusal.GROWN)
            operation.actor, operation.reason, operation.rate = actor, reason, rate
            operation.money = frozen_money(operation)
            operation.approval = approval_reason(operation.waiting, operation.money)
            operation.state = OperationState.APPROVAL
            if not operation.approval:
                _schedule(operation)
            operation.save()
            record_event(operation, "confirmed", actor, reason)
            if operation.approval:
                request_approval(operation)
    except _RolledBack as undone:
        return undone.why
    return None


def _require(condition: bool, otherwise: Refusal) -> None:
    if not condition:
        raise _RolledBack(otherwise)


@transaction.atomic
def approve(operation_id: int, *, actor: str, reason: str = "") -> Refusal | None:
    """Approve an operation as a second person; return the refusal, or None."""
    operation = _locked(operation_id)
    if operation is None or operation.state != OperationState.APPROVAL:
        return Refusal.CHANGED
    if operation.actor == actor:
        return Refusal.SAME_PERSON
    operation.approved_by, operation.approved_at = actor, DatabaseNow()
    _schedule(operation)
    operation.save(update_fields=["approved_by", "approved_at", "state", "starts_at"])
    record_event(operation, "approved", actor, reason)
    close_approval_request(operation)
    return None


def approval_reason(items: int, money: dict[str, int]) -> str:
    """Return why an operation of this size needs a second person, or nothing."""
    limits = SupervisorPolicy.objects.first() or SupervisorPolicy()
    if limits.approve_items is not None and items > limits.approve_items:
        return f"this affects {items:,} items (limit: {limits.approve_items:,})"
    for currency, amount in sorted(money.items()):
        if limits.approve_sum is not None and amount > limits.approve_sum:
            most = format_money(limits.approve_sum, currency)
            return f"this affects {format_money(amount, currency)} (limit: {most})"
    return ""


def _schedule(operation: Operation) -> None:
    operation.state = OperationState.WAITING
    operation.starts_at = DatabaseNow() + timedelta(seconds=conf.OPERATION_GRACE_S)


def _locked(operation_id: int) -> Operation | None:
    return Operation.objects.select_for_update(no_key=True).filter(id=operation_id).first()
