"""Bulk operations: the list, and one with its items, from the counts that were kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from ...database import clock
from ...models import Event, Incident, Operation, OperationItem
from ...models.operation import OperationState
from .conflicts import UserAction

PAGE = 50
COUNTED = ("waiting", "sent", "fixed", "again", "other", "skipped")  # items by state
MOST_ACTS = 50
OPEN = (
    OperationState.APPROVAL, OperationState.WAITING, OperationState.RUNNING, OperationState.PAUSED,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class OperationFilters:
    """The filters of the list; empty means any. `before` is the last row of the previous page."""

    state: str = ""
    act: str = ""
    actor: str = ""
    incident: int | None = None
    before: int | None = None


@dataclass(frozen=True, kw_only=True)
class OperationPage:
    """One page of operations, newest first; `older` continues it."""

    now: datetime
    rows: Sequence[Operation]
    older: int | None


@dataclass(frozen=True, kw_only=True)
class OperationDetail:
    """All that the page of an operation shows; `more` continues its items."""

    now: datetime
    operation: Operation
    items: Sequence[OperationItem]
    more: int | None
    acts: Sequence[Event]


def filtered(filters: OperationFilters) -> QuerySet[Operation]:
    """Return the operations that `filters` ask for, without dry runs, in no order."""
    matches = Operation.objects.exclude(state=OperationState.DRAFT).select_related("incident")
    if filters.state == "open":
        matches = matches.filter(state__in=OPEN)
    elif filters.state:
        matches = matches.filter(state=filters.state)
    if filters.act:
        matches = matches.filter(act=filters.act)
    if filters.actor:
        matches = matches.filter(actor=filters.actor)
    if filters.incident:
        matches = matches.filter(incident=filters.incident)
    return matches


def operations(filters: OperationFilters) -> OperationPage:
    """Return the page of operations that `filters` ask for."""
    matches = filtered(filters)
    if filters.before:
        matches = matches.filter(id__lt=filters.before)
    rows = list(matches.order_by("-id")[: PAGE + 1])
    return OperationPage(
        now=clock.database_now(),
        rows=rows[:PAGE],
        older=rows[PAGE - 1].id if len(rows) > PAGE else None,
    )


def operation_by_id(operation_id: int) -> Operation | None:
    """Return an operation with its incident, or None if there is none."""
    return Operation.objects.select_related("incident").filter(id=operation_id).first()


def operation_detail(
    operation: Operation, *, state: str = "", after: int | None = None
) -> OperationDetail:
    """Return what the page of an operation shows, of its items those in `state`: three queries."""
    matches = items(operation, state)
    if after:
        matches = matches.filter(id__gt=after)
    rows = list(matches.order_by("id")[: PAGE + 1])
    acts = Event.objects.filter(operation=operation, task=None).order_by("-id")
    return OperationDetail(
        now=clock.database_now(),
        operation=operation,
        items=rows[:PAGE],
        more=rows[PAGE - 1].id if len(rows) > PAGE else None,
        acts=list(acts[:MOST_ACTS]),
    )


def items(operation: Operation, state: str) -> QuerySet[OperationItem]:
    """Return the items of an operation with their tasks and steps, those in a state if one is given."""
    rows = OperationItem.objects.filter(operation=operation).select_related("task", "step")
    return rows.filter(state=state) if state else rows


def change_of(item: OperationItem) -> dict[str, Any]:
    """Return the request of an item's step, and the one that replaces it, if one does."""
    if not item.change or item.step is None or "request" not in item.change:
        return {}
    return {"before": item.step.request, "after": item.change["request"]}


def last_action_on_operation(operation_id: int) -> UserAction | None:
    """Return the last action on an operation, for the user who acts second."""
    acts = Event.objects.filter(operation=operation_id, task=None)
    event = acts.order_by("-id").first()
    if event is None:
        return None
    did = f"{event.detail['what']} it" if " " not in event.detail["what"] else "cancelled it"
    return UserAction.of_event(event, did)


def ever_tried(incident: Incident) -> bool:
    """Return whether anything of an incident was resubmitted before: if not, try one first."""
    started = incident.operations.exclude(state=OperationState.DRAFT)
    return incident.tried_at is not None or started.exists()
