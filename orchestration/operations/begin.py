"""How an operation begins: a dry run, its confirmation, and a second person's word where one is needed."""

from datetime import timedelta
from typing import Any

from django.db import transaction

from .. import conf
from ..models import Operation, SupervisorPolicy
from ..models.fields import DatabaseNow
from ..models.operation import Act, OperationState
from ..money import written
from ..progression import Refusal
from .count import recount
from .selection import Chosen, figures, freeze, frozen_money
from .told import ask_for_second_person, ask_no_more, note


class _Undone(Exception):
    """Takes back what a confirmation wrote, and says why."""

    def __init__(self, why: Refusal) -> None:
        super().__init__(why.value)
        self.why = why


def draft(
    act: Act,
    selection: dict[str, Any],
    chosen: Chosen,
    *,
    actor: str,
    incident: int | None = None,
    sample: int | None = None,
) -> Operation:
    """Make the dry run of an act on a selection; nothing but this row is written.

    `selection` is kept as it was given, and `chosen` is what it means.
    """
    return Operation.objects.create(
        act=act, selection=selection, sample=sample, actor=actor, incident_id=incident,
        forced=chosen.forced, preview=figures(act, chosen),
    )  # fmt: skip


def preview(operation: Operation, chosen: Chosen) -> None:
    """Look at the selection of a dry run again: it may have changed since."""
    drafts = Operation.objects.filter(id=operation.id, state=OperationState.DRAFT)
    drafts.update(
        preview=figures(Act(operation.act), chosen),
        forced=chosen.forced,
        created_at=DatabaseNow(),
    )


def confirm(
    operation_id: int,
    chosen: Chosen,
    *,
    actor: str,
    reason: str,
    rate: float,
    sample: int | None = None,
    result: dict[str, Any] | None = None,
) -> Refusal | None:
    """Freeze the items of a dry run and have it begin; return why not, or None when it was done.

    With a `sample`, only so many of them; `result` is what steps done by hand gave.

    It begins after `conf.TAKE_BACK` seconds, or, above the size or sum that admins set, once a
    second person has approved it. If more is eligible by now than the dry run showed, whoever
    confirms has not seen it: then nothing is written.
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
            if eligible + sum(operation.preview["skipped"].values()) > conf.LARGEST_OPERATION:
                return Refusal.TOO_MANY
            operation.sample, operation.result = sample, result
            freeze(operation, chosen)
            recount(operation)
            _require(operation.waiting > 0, Refusal.NOTHING_TO_DO)
            _require(operation.waiting <= seen, Refusal.GROWN)
            operation.actor, operation.reason, operation.rate = actor, reason, rate
            operation.money = frozen_money(operation)
            operation.approval = too_big(operation.waiting, operation.money)
            operation.state = OperationState.APPROVAL
            if not operation.approval:
                _let_begin(operation)
            operation.save()
            note(operation, "confirmed", actor, reason)
            if operation.approval:
                ask_for_second_person(operation)
    except _Undone as undone:
        return undone.why
    return None


def _require(condition: bool, otherwise: Refusal) -> None:
    if not condition:
        raise _Undone(otherwise)


@transaction.atomic
def approve(operation_id: int, *, actor: str, reason: str = "") -> Refusal | None:
    """Let a second person agree to an operation; return why not, or None when it was done."""
    operation = _locked(operation_id)
    if operation is None or operation.state != OperationState.APPROVAL:
        return Refusal.CHANGED
    if operation.actor == actor:
        return Refusal.SAME_PERSON
    operation.approved_by, operation.approved_at = actor, DatabaseNow()
    _let_begin(operation)
    operation.save(update_fields=["approved_by", "approved_at", "state", "starts_at"])
    note(operation, "approved", actor, reason)
    ask_no_more(operation)
    return None


def too_big(items: int, money: dict[str, int]) -> str:
    """Return why an operation of this size needs a second person, or nothing."""
    limits = SupervisorPolicy.objects.first() or SupervisorPolicy()
    if limits.approve_items is not None and items > limits.approve_items:
        return f"{items:,} items are more than {limits.approve_items:,}"
    for currency, amount in sorted(money.items()):
        if limits.approve_sum is not None and amount > limits.approve_sum:
            most = written(limits.approve_sum, currency)
            return f"{written(amount, currency)} are more than {most}"
    return ""


def _let_begin(operation: Operation) -> None:
    operation.state = OperationState.WAITING
    operation.starts_at = DatabaseNow() + timedelta(seconds=conf.TAKE_BACK)


def _locked(operation_id: int) -> Operation | None:
    return Operation.objects.select_for_update(no_key=True).filter(id=operation_id).first()
