"""What each kind of operation does to its items, through the transitions that people use, too."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from .. import crashpoints, schemas
from ..models import Operation, OperationItem
from ..models.operation import Act, ItemState
from ..progression import Refusal
from ..states import TaskState
from ..transitions.holds import hold_tasks, release_tasks
from ..transitions.resubmit import done_by_hand, resubmit_all
from ..transitions.undo import undo

ONE_BY_ONE = (Act.UNDO,)  # many statements each: what they lock must not be locked for all of them

# Within one group a task is still what it was when it was seen.
ALIKE: dict[str, tuple[str, ...]] = {
    state: (TaskState.PENDING, TaskState.PROCESSING)
    if state in {TaskState.PENDING, TaskState.PROCESSING}
    else (state,)
    for state in TaskState.values
}

Answers = dict[int, Refusal | str | None]
Mark = Callable[[Sequence[tuple[OperationItem, ItemState, str]]], None]


def perform(operation: Operation, items: Sequence[OperationItem], mark: Mark) -> Answers:
    """Act on items whose tasks are locked, and mark them; return for each why not, or None.

    Each is marked as sent before the act, so that what comes of it at once is noted.
    """
    mark([(item, ItemState.SENT, "") for item in items])
    crashpoints.reached("operation.marked", items)
    answers = PERFORM[Act(operation.act)](operation, items)
    if ended := [_ended(operation, item, answers[item.id]) for item in items]:
        mark([one for one in ended if one[1] != ItemState.SENT])
    return answers


def _ended(
    operation: Operation, item: OperationItem, answer: Refusal | str | None
) -> tuple[OperationItem, ItemState, str]:
    """Return an item's state after the act: what is not to be waited for has its end at once."""
    if answer is not None:
        why = answer.value if isinstance(answer, Refusal) else answer
        return item, ItemState.SKIPPED, why
    lasting = operation.act in {Act.RESUBMIT, Act.UNDO}
    return item, ItemState.SENT if lasting else ItemState.FIXED, ""


def _resubmit(operation: Operation, items: Sequence[OperationItem]) -> Answers:
    seen = {int(item.step_id or 0): int(item.attempt or 0) for item in items}
    answers = resubmit_all(seen, **_who(operation))
    return {item.id: answers[int(item.step_id or 0)] for item in items}


def _by_hand(operation: Operation, items: Sequence[OperationItem]) -> Answers:
    answers: Answers = {}
    for item in items:
        try:
            answers[item.id] = done_by_hand(
                int(item.step_id or 0), attempt=int(item.attempt or 0),
                result=operation.result or {}, **_who(operation),
            )  # fmt: skip
        except schemas.Invalid as problem:
            answers[item.id] = f"the result does not suit it: {problem}"
    return answers


def _undo(operation: Operation, items: Sequence[OperationItem]) -> Answers:
    return {
        item.id: undo(item.task_id, seen=ALIKE[item.seen], force=item.stands, **_who(operation))
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
