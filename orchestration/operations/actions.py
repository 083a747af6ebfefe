"""Perform an operation on its items, by the same transitions as for single tasks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from ..agents import payload_schemas
from ..cluster import crash_points
from ..decisions.progress import Refusal
from ..models import Operation, OperationItem
from ..models.operation import Act, ItemState
from ..states import TaskState
from ..transitions.holds import hold_tasks, release_tasks
from ..transitions.resubmit import done_by_hand, resubmit, resubmit_all
from ..transitions.undo import undo
from .recorded import record

ONE_BY_ONE = (Act.UNDO,)  # many statements each, whose locks must not be held for a whole batch

# A task counts as unchanged while its state stays in the same group.
SAME_GROUP: dict[str, tuple[str, ...]] = {
    state: (TaskState.PENDING, TaskState.PROCESSING)
    if state in {TaskState.PENDING, TaskState.PROCESSING}
    else (state,)
    for state in TaskState.values
}

Answers = dict[int, Refusal | str | None]
Mark = Callable[[Sequence[tuple[OperationItem, ItemState, str]]], None]


def perform(operation: Operation, items: Sequence[OperationItem], mark: Mark) -> Answers:
    """Act on items whose tasks are locked, and mark them; return the refusal of each, or None.

    Each is marked as sent before the action, so that an immediate result finds it sent.
    """
    mark([(item, ItemState.SENT, "") for item in items])
    crash_points.reached("operation.marked", items)
    answers = PERFORM[Act(operation.act)](operation, items)
    if ended := [_ended(operation, item, answers[item.id]) for item in items]:
        mark([answer for answer in ended if answer[1] != ItemState.SENT])
    return answers


def _ended(
    operation: Operation, item: OperationItem, answer: Refusal | str | None
) -> tuple[OperationItem, ItemState, str]:
    """Return an item's state after the action: one without a later result ends at once."""
    if answer is not None:
        why = answer.value if isinstance(answer, Refusal) else answer
        return item, ItemState.SKIPPED, why
    lasting = operation.act in {Act.RESUBMIT, Act.UNDO}
    return item, ItemState.SENT if lasting else ItemState.FIXED, ""


def _resubmit(operation: Operation, items: Sequence[OperationItem]) -> Answers:
    changed = {item.id: _change(operation, item) for item in items if item.change is not None}
    items = [item for item in items if item.id not in changed]
    if not items:
        return changed
    seen = {int(item.step_id or 0): int(item.attempt or 0) for item in items}
    answers = resubmit_all(seen, **_who(operation))
    return changed | {item.id: answers[int(item.step_id or 0)] for item in items}


def _change(operation: Operation, item: OperationItem) -> Refusal | str | None:
    """Resubmit the step of an item with the change that was approved."""
    try:
        return resubmit(
            int(item.step_id or 0),
            attempt=int(item.attempt or 0),
            **(item.change or {}),
            **_who(operation),
        )
    except payload_schemas.Invalid as problem:
        return f"its input is not valid any more: {problem}"


def _by_hand(operation: Operation, items: Sequence[OperationItem]) -> Answers:
    answers: Answers = {}
    for item in items:
        if item.change is not None:  # of a step that awaits its result
            answers[item.id] = _record(operation, item)
            continue
        try:
            answers[item.id] = done_by_hand(
                int(item.step_id or 0), attempt=int(item.attempt or 0),
                result=operation.result or {}, **_who(operation),
            )  # fmt: skip
        except payload_schemas.Invalid as problem:
            answers[item.id] = f"the result does not suit it: {problem}"
    return answers


def _record(operation: Operation, item: OperationItem) -> Refusal | None:
    """Record the result of an awaiting step that was approved."""
    return record(
        int(item.step_id or 0), attempt=int(item.attempt or 0),
        **(item.change or {}), **_who(operation),
    )  # fmt: skip


def _undo(operation: Operation, items: Sequence[OperationItem]) -> Answers:
    return {
        item.id: undo(
            item.task_id, seen=SAME_GROUP[item.seen], force=item.stands, **_who(operation)
        )
        for item in items
    }


def _hold(operation: Operation, items: Sequence[OperationItem]) -> Answers:
    return _by_task(items, hold_tasks([item.task_id for item in items], **_who(operation)))


def _release(operation: Operation, items: Sequence[OperationItem]) -> Answers:
    return _by_task(items, release_tasks([item.task_id for item in items], **_who(operation)))


def _by_task(items: Sequence[OperationItem], answers: Mapping[UUID, Refusal | None]) -> Answers:
    return {item.id: answers[item.task_id] for item in items}


def _who(operation: Operation) -> dict[str, Any]:
    return {
        "actor": operation.actor,
        "reason": operation.reason,
        "operation": operation.id,
    }


PERFORM: dict[Act, Callable[[Operation, Sequence[OperationItem]], Answers]] = {
    Act.RESUBMIT: _resubmit,
    Act.UNDO: _undo,
    Act.BY_HAND: _by_hand,
    Act.HOLD: _hold,
    Act.RELEASE: _release,
}
