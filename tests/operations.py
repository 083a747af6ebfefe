"""Short words for bulk operations, so that tests say what they are about."""

from datetime import timedelta
from uuid import uuid4

from django.db import transaction
from django.db.models import QuerySet

from orchestration import leader, operations, sql
from orchestration.models import (
    Operation,
    OperationItem,
    Policy,
    Step,
    SupervisorPolicy,
    Task,
)
from orchestration.models.fields import DatabaseNow
from orchestration.operations import Chosen, run
from orchestration.transitions.create import NewTask, create
from orchestration.transitions.record import record
from tests.engine import claimed, reply_to


def lead(name="housekeeper-1"):
    """Have a housekeeper lead; return its leadership."""
    leadership = leader.acquire(name, name=leader.HOUSEKEEPER)
    assert leadership is not None
    return leadership


def failed(count, code="no_route", *, message="it was rejected") -> list[Task]:
    """Make tasks whose first step is in error, each for the same cause; `{n}` is its number."""
    Policy.objects.filter(agent="greeter").update(window=10_000, breaker_failures=20)
    with transaction.atomic():
        made = create(
            [
                NewTask(workflow="greet", reference=uuid4().hex, data={"name": "Ada"})
                for _ in range(count)
            ]
        )
    answer(
        lambda request: reply_to(
            request, "rejected", code=code, message=message.format(n=request.step)
        )
    )
    return list(Task.objects.filter(id__in=made).order_by("id"))


def answer(how) -> int:
    """Answer each request that the agent has now; return how many there were."""
    count = 0
    while requests := claimed():
        count += len(requests)
        record([how(request) for request in requests])
    return count


def chosen(tasks, **only) -> Chosen:
    if isinstance(tasks, QuerySet):
        return Chosen(tasks=tasks.values_list("id", flat=True), **only)
    ids = [task.id for task in tasks]
    rows = Task.objects.filter(id__in=ids).values_list("id", flat=True)
    return Chosen(tasks=rows, explicit=True, **only)


def drafted(tasks, act="resubmit", *, actor="ann", forced=False, **options) -> Operation:
    selection = {"tasks": [str(task.id) for task in tasks]}
    return operations.draft(act, selection, chosen(tasks, forced=forced), actor=actor, **options)


def confirmed(
    tasks, act="resubmit", *, rate=1000.0, actor="ann", forced=False, **options
) -> Operation:
    """Make an operation and confirm it: its first seconds run, or it awaits approval."""
    operation = drafted(tasks, act, actor=actor, forced=forced)
    refusal = operations.confirm(
        operation.id, chosen(tasks, forced=forced), actor=actor, reason="it is mended", rate=rate,
        **options,
    )  # fmt: skip
    assert refusal is None
    operation.refresh_from_db()
    return operation


def begin(operation) -> None:
    """Let its first seconds be over."""
    Operation.objects.filter(id=operation.id).update(starts_at=DatabaseNow())


def running(tasks, act="resubmit", **options) -> Operation:
    """Make an operation whose first seconds are over."""
    operation = confirmed(tasks, act, **options)
    begin(operation)
    return operation


def pass_time(operation, seconds) -> None:
    """Have its rate allow as much as if its last turn had been so many seconds ago."""
    before = DatabaseNow() - timedelta(seconds=seconds)
    Operation.objects.filter(id=operation.id, paced_at__isnull=False).update(paced_at=before)


def advance(operation, by=None, *, seconds=1.0) -> Operation:
    """Let a supervisor take it on, `seconds` after the last time."""
    sql.run(run.BEGIN, {"now": None})
    pass_time(operation, seconds)
    operations.advance(by or lead(), reach=3600.0)
    operation.refresh_from_db()
    return operation


def states(operation) -> dict[str, int]:
    """Return how many of its items are in which state; those that are in none are left out."""
    counts: dict[str, int] = {}
    for state in OperationItem.objects.filter(operation=operation).values_list("state", flat=True):
        counts[state] = counts.get(state, 0) + 1
    return counts


def steps_of(tasks, name="hello"):
    return list(Step.objects.filter(task__in=tasks, name=name).order_by("id"))


def standing(task, state) -> Operation:
    """Make an operation in a state: to hold one task."""
    if state == "draft":
        return drafted([task], "hold")
    if state == "approval":
        SupervisorPolicy.objects.update_or_create(id=1, defaults={"approve_items": 0})
    operation = confirmed([task], "hold")
    if state in {"running", "paused"}:
        Operation.objects.filter(id=operation.id).update(state="running")
    if state == "paused":
        assert operations.pause(operation.id, actor="ann") is None
    operation.refresh_from_db()
    assert operation.state == state
    return operation
