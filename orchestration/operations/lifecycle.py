"""Start an operation: dry run, confirmation, and approval where one is needed."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction

from .. import conf
from ..decisions.progress import Refusal
from ..models import Operation, OperationItem
from ..models.fields import DatabaseNow
from ..models.operation import Act, OperationState
from ..people import accounts, limits
from ..people.person import Person
from . import rights
from .counters import recount
from .events import close_approval_request, record_event, request_approval
from .items import SelectedTasks, freeze, frozen_money, money_warning, preview_figures


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What steps get beside the act itself, and why a second person is needed in any case.

    `result` is that of steps done by hand; `change` is how steps are resubmitted, if not as they are.
    """

    result: dict[str, Any] | None = None
    change: dict[str, Any] | None = None
    second: str = ""


PLAIN = Terms()
LONGEST_WHY = 200


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
    actor: Person,
    incident: int | None = None,
    sample: int | None = None,
) -> Operation:
    """Create the dry run of an action on a selection; only this row is written.

    `selection` is stored as it was given; `chosen` are the tasks that it selects.
    """
    return Operation.objects.create(
        act=act, selection=selection, sample=sample, actor=actor.name, incident_id=incident,
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
    actor: Person,
    reason: str,
    rate: float,
    sample: int | None = None,
    terms: Terms = PLAIN,
) -> Refusal | None:
    """Freeze the items of a dry run and schedule its start; return the refusal, or None.

    `sample` limits the number of items. It starts after `conf.OPERATION_GRACE_S` seconds; after the
    approval of a second person if `terms` say so, if it says that money was moved by hand, or if
    `actor` does more alone within a day than admins allow. If more items are eligible than the dry run
    showed, nothing is written.
    """
    try:
        with transaction.atomic():
            operation = _locked(operation_id)
            if operation is None or (refusal := _refused(operation, chosen, actor)):
                return refusal if operation else Refusal.CHANGED
            eligible = operation.preview["eligible"]
            seen = eligible if chosen.most is None else min(chosen.most, eligible)
            operation.sample, operation.result = sample, terms.result
            freeze(operation, chosen)
            recount(operation)
            _require(operation.waiting > 0, Refusal.NOTHING_TO_DO)
            _require(operation.waiting <= seen, Refusal.GROWN)
            operation.actor, operation.actor_user = actor.name, actor.user
            operation.reason, operation.rate = reason, rate
            operation.money = frozen_money(operation)
            if terms.change is not None:
                OperationItem.objects.filter(operation=operation).update(change=terms.change)
            operation.approval = (terms.second or _beyond(operation, actor))[:LONGEST_WHY]
            operation.state = OperationState.APPROVAL
            if not operation.approval:
                limits.count(actor, operation.waiting, operation.money, operation)
                _schedule(operation)
            operation.save()
            record_event(operation, "confirmed", actor.name, reason)
            if operation.approval:
                request_approval(operation)
    except _RolledBack as undone:
        return undone.why
    return None


def _refused(operation: Operation, chosen: SelectedTasks, actor: Person) -> Refusal | None:
    """Return why a dry run cannot be confirmed, or None when it can."""
    if operation.state != OperationState.DRAFT:
        return Refusal.CHANGED
    if operation.forced != chosen.forced:
        return Refusal.CHANGED  # what was shown is not what would be done
    if not actor.may(*rights.needed(Act(operation.act), forced=operation.forced)):
        return Refusal.NOT_PERMITTED
    counts = operation.preview
    too_many = counts["eligible"] + sum(counts["skipped"].values()) > conf.MAX_OPERATION_ITEMS
    return Refusal.TOO_MANY if too_many else None


def _beyond(operation: Operation, actor: Person) -> str:
    """Return why a frozen operation is more than one person may do alone, empty if it is not."""
    day = limits.day_of(actor, lock=True)
    return money_warning(operation) or day.excess(operation.waiting, operation.money)


def _require(condition: bool, otherwise: Refusal) -> None:
    if not condition:
        raise _RolledBack(otherwise)


@transaction.atomic
def approve(operation_id: int, *, actor: Person, reason: str = "") -> Refusal | None:
    """Approve an operation as a second person; return the refusal, or None."""
    operation = _locked(operation_id)
    if operation is None or operation.state != OperationState.APPROVAL:
        return Refusal.CHANGED
    if actor.user is None:
        return Refusal.NOT_SIGNED_IN
    if not actor.may(rights.APPROVE):
        return Refusal.NOT_PERMITTED
    if not is_second(operation, actor):
        return Refusal.SAME_PERSON
    operation.approved_by, operation.approved_by_user = actor.name, actor.user
    operation.approved_at = DatabaseNow()
    _schedule(operation)
    operation.save(
        update_fields=["approved_by", "approved_by_user", "approved_at", "state", "starts_at"]
    )
    record_event(operation, "approved", actor.name, reason)
    close_approval_request(operation)
    return None


def is_second(operation: Operation, actor: Person) -> bool:
    """Return whether `actor` is another person than the one who asked for an operation.

    Accounts decide. A name alone never makes a person another one, but the same name may be the
    same person: of an operation that was asked for in a shell, or by a user that was deleted.
    """
    if actor.user is None or operation.actor == actor.name:
        return False
    return operation.actor_user is None or not accounts.one_person(operation.actor_user, actor.user)


def _schedule(operation: Operation) -> None:
    operation.state = OperationState.WAITING
    operation.starts_at = DatabaseNow() + timedelta(seconds=conf.OPERATION_GRACE_S)


def _locked(operation_id: int) -> Operation | None:
    return Operation.objects.select_for_update(no_key=True).filter(id=operation_id).first()
