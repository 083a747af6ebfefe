"""Send the items of operations at their rates, check the sent ones, and count; the housekeeper calls it.

Each turn is one transaction under the lock of the operation's row, and an item is marked in the
transaction that acts on it: after a crash both are done, or neither. A process that lost its lease stops.
If two run at once, the row lock admits one, and the other skips the operation.
"""

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from django.db import transaction

from .. import conf, policies
from ..cluster import crash_points, leader_election
from ..cluster.duty import Duty
from ..cluster.leader_election import Leadership
from ..database import batches, clock, sql
from ..decisions.backoff import refilled
from ..models import Operation, OperationItem, Step, Task
from ..models.fields import DatabaseNow
from ..models.operation import ItemState, OperationState
from ..people import limits
from ..states import StepState, TaskState
from .actions import ONE_BY_ONE, perform
from .counters import recount

logger = logging.getLogger(__name__)

BEGIN = f"""
UPDATE orchestration_operation SET state = 'running', started_at = clock_timestamp(),
    tokens_at = clock_timestamp(), tokens = 1
WHERE state = 'waiting' AND starts_at <= {clock.VERIFIED}
"""  # noqa: S608 - a constant of our own

MARK = """
UPDATE orchestration_operationitem i SET state = m.state, reason = m.reason,
    sent_at = CASE m.state WHEN 'sent' THEN clock_timestamp() ELSE i.sent_at END,
    ended_at = CASE m.state WHEN 'sent' THEN NULL ELSE clock_timestamp() END
FROM unnest(%(ids)s::bigint[], %(states)s::text[], %(reasons)s::text[]) AS m (id, state, reason)
WHERE i.id = m.id AND i.state IN ('waiting', 'sent')
"""

# What a step that has ended means for its item. That one failed again is noted as it happens
# (`transitions/operation_items.py`), so one that is processed now never failed in between.
BY_HAND = (ItemState.SKIPPED, "it was marked as done by hand meanwhile")
ENDED_AS = {
    StepState.PROCESSED: (ItemState.FIXED, ""),
    StepState.SKIPPED: (ItemState.FIXED, ""),  # refused, and its workflow goes on without it
    StepState.CANCELLED: (ItemState.SKIPPED, "its task was undone meanwhile"),
}


@dataclass(kw_only=True)
class _Sending:
    """The limits of one sweep: its end, its lease, and the interval that it may make up for."""

    until: float
    leadership: Leadership
    reach: float


def advance(leadership: Leadership, *, reach: float = 2.0) -> int:
    """Advance all open operations; return how many items were sent.

    `reach` is the time in seconds that a late sweep may make up for.
    """
    sql.run(BEGIN, {"now": leadership.at})
    until = time.monotonic() + conf.OPERATIONS_BUDGET_S
    sending = _Sending(until=until, leadership=leadership, reach=reach)
    open_ones = Operation.objects.filter(ended_at=None).exclude(state=OperationState.DRAFT)
    done = 0
    for operation in list(open_ones.order_by("id").values_list("id", "state")):
        if operation[1] == OperationState.RUNNING:
            done += _send(operation[0], sending)
        if operation[1] in {OperationState.RUNNING, OperationState.PAUSED, OperationState.ABORTED}:
            _check_sent(operation[0])
    return done


def _send(operation_id: int, sending: _Sending) -> int:
    """Send what the rate allows in batches, until the time is over; return how many items.

    What it allows meanwhile is for the next sweep. An item that cannot be sent is skipped.
    """
    _accrue(operation_id, sending.reach)
    done, failing = batches.all_found(
        partial(_next, operation_id),
        partial(_turn, operation_id, sending),
        sending.until - time.monotonic(),
    )
    for number, error in failing.items():
        logger.error(
            "operation %d: a batch failed for item %d", operation_id, number, exc_info=error
        )
    if failing:
        _skip_unsendable(operation_id, failing)
    return done


@transaction.atomic
def _accrue(operation_id: int, reach: float) -> None:
    """Count the time since the last sweep."""
    operation = _locked(operation_id)
    if operation is not None:
        now = clock.database_now()
        since = (now - (operation.tokens_at or now)).total_seconds()
        operation.tokens = refilled(operation.tokens, since, operation.rate, reach)
        operation.tokens_at = now
        operation.save(update_fields=["tokens", "tokens_at"])


def _next(operation_id: int, limit: int, excluded: Collection[int]) -> list[int]:
    """Return the next items that the rate allows, except `excluded`."""
    operation = Operation.objects.get(id=operation_id)
    size = min(limit, int(operation.tokens), 1 if operation.act in ONE_BY_ONE else limit)
    items = OperationItem.objects.filter(operation=operation, state=ItemState.WAITING)
    return list(items.exclude(id__in=excluded).order_by("id").values_list("id", flat=True)[:size])


@transaction.atomic
def _turn(operation_id: int, sending: _Sending, ids: Sequence[int]) -> int:
    """Send one batch; return how many items had their turn."""
    operation = _locked(operation_id)
    if operation is None or operation.state != OperationState.RUNNING:
        return 0
    if not leader_election.holds(sending.leadership):
        return 0
    items = _waiting(operation, ids[: int(operation.tokens)])
    answers = perform(operation, items, _mark) if items else {}
    crash_points.reached("operation.before_commit", answers)
    operation.tokens -= len(answers)
    operation.save(update_fields=["tokens"])
    return len(answers)


def _waiting(operation: Operation, ids: Collection[int]) -> list[OperationItem]:
    """Lock items and their tasks; pass over those that others have locked, or that wait no more."""
    waiting = OperationItem.objects.filter(operation=operation, state=ItemState.WAITING, id__in=ids)
    locked = sql.lock(waiting, no_key=True, of=("self", "task"))
    return list(locked.select_related("task").defer("task__data").order_by("id"))


def _mark(items: Sequence[tuple[OperationItem, ItemState, str]]) -> None:
    """Write the states of items in hand, each with a reason if it is skipped."""
    sql.run(
        MARK,
        {
            "ids": [item.id for item, _, _ in items],
            "states": [state.value for _, state, _ in items],
            "reasons": [reason[:500] for _, _, reason in items],
        },
    )


@transaction.atomic
def _skip_unsendable(operation_id: int, ids: Collection[int]) -> None:
    """Pass over items that cannot be sent, so that the others go on."""
    operation = _locked(operation_id)
    if operation is not None:
        why = "the action failed: see the log of the housekeeper"
        _mark([(item, ItemState.SKIPPED, why) for item in _waiting(operation, ids)])


@transaction.atomic
def _check_sent(operation_id: int) -> None:
    """Find out what became of items under way, a bounded number from where it ended, and count."""
    operation = _locked(operation_id)
    if operation is None:
        return
    under_way = OperationItem.objects.filter(
        operation=operation, state=ItemState.SENT, id__gt=operation.checked_until
    )
    looked = list(under_way.order_by("id")[: conf.OPERATION_ITEMS_PER_SWEEP])
    if ended := _ended(looked):
        _mark(ended)
    operation.checked_until = looked[-1].id if len(looked) == conf.OPERATION_ITEMS_PER_SWEEP else 0
    operation.save(update_fields=["checked_until"])
    recount(operation)


def _ended(items: Sequence[OperationItem]) -> list[tuple[OperationItem, ItemState, str]]:
    """Return those of items under way that have come to their end, and to which."""
    steps = [item.step_id for item in items if item.step_id is not None]
    tasks = [item.task_id for item in items if item.step_id is None]
    rows = Step.objects.filter(id__in=steps, process_state__in=ENDED_AS)
    ends = {
        step: BY_HAND if done_by else ENDED_AS[StepState(state)]
        for step, state, done_by in rows.values_list("id", "process_state", "done_by")
    }
    undone = set(
        Task.objects.filter(id__in=tasks, state=TaskState.UNDONE).values_list("id", flat=True)
    )
    ended = []
    for item in items:
        if item.step_id in ends:
            ended.append((item, *ends[item.step_id]))
        elif item.step_id is None and item.task_id in undone:
            ended.append((item, ItemState.FIXED, ""))
    return ended


def _locked(operation_id: int) -> Operation | None:
    """Lock an operation; None while another session has locked it."""
    return sql.lock(Operation.objects.filter(id=operation_id), no_key=True).first()


def prune_drafts() -> int:
    """Delete dry runs that are older than `conf.DRAFT_TTL_S`, and what no limit counts; return how many."""
    limits.prune()
    long_ago = DatabaseNow() - timedelta(seconds=conf.DRAFT_TTL_S)
    drafts = Operation.objects.filter(state=OperationState.DRAFT, created_at__lt=long_ago)
    return drafts.delete()[0]


ADVANCE = Duty(
    name="advance operations",
    run=lambda sweep: advance(sweep.leadership, reach=2 * policies.interval()),
    counted="acted on in bulk",
    due="EXISTS (SELECT FROM orchestration_operation WHERE ended_at IS NULL AND state <> 'draft')",
)
PRUNE_DRAFTS = Duty(name="prune dry runs", run=lambda _: prune_drafts(), every=conf.DUTY_INTERVAL_S)
