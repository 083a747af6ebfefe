"""Create bulk operations, confirm them and advance them, without a running stack."""

from datetime import timedelta
from uuid import uuid4

from django.db import transaction
from django.db.models import QuerySet

from orchestration.cluster import leader_election
from orchestration.database import sql
from orchestration.models import (
    Operation,
    OperationItem,
    Policy,
    Step,
    SupervisorPolicy,
    Task,
)
from orchestration.models.fields import DatabaseNow
from orchestration.operations import controls, runner
from orchestration.operations import runner as run_operations
from orchestration.operations.items import SelectedTasks
from orchestration.operations.lifecycle import Terms, confirm, draft
from orchestration.people.person import Person
from orchestration.transitions.create import NewTask, create
from orchestration.transitions.replies import record
from tests.support.engine import claimed, reply_to


def lead(name="housekeeper-1"):
    """Make a housekeeper the leader; return its leadership."""
    leadership = leader_election.acquire(name, name=leader_election.HOUSEKEEPER)
    assert leadership is not None
    return leadership


def failed(count, code="no_route", *, message="it was rejected") -> list[Task]:
    """Make tasks whose first step failed for one cause; `{n}` in `message` is the step's id."""
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
    """Answer every request with `how(request)` until none is left; return their number."""
    count = 0
    while requests := claimed():
        count += len(requests)
        record([how(request) for request in requests])
    return count


def chosen(tasks, **only) -> SelectedTasks:
    if isinstance(tasks, QuerySet):
        return SelectedTasks(tasks=tasks.values_list("id", flat=True), **only)
    ids = [task.id for task in tasks]
    rows = Task.objects.filter(id__in=ids).values_list("id", flat=True)
    return SelectedTasks(tasks=rows, explicit=True, **only)


def drafted(tasks, act="resubmit", *, actor="ann", forced=False, **options) -> Operation:
    """Make a dry run; `actor` is a name that was given in a shell, or a user."""
    selection = {"tasks": [str(task.id) for task in tasks]}
    return draft(act, selection, chosen(tasks, forced=forced), actor=who(actor), **options)


def confirmed(
    tasks, act="resubmit", *, rate=1000.0, actor="ann", forced=False, result=None, **options
) -> Operation:
    """Make an operation and confirm it: it waits for its start, or for approval."""
    operation = drafted(tasks, act, actor=actor, forced=forced)
    refusal = confirm(
        operation.id, chosen(tasks, forced=forced), actor=who(actor), reason="it is mended",
        rate=rate, terms=Terms(result=result), **options,
    )  # fmt: skip
    assert refusal is None
    operation.refresh_from_db()
    return operation


def who(actor) -> Person:
    return Person(name=actor) if isinstance(actor, str) else Person.of(actor)


def begin(operation) -> None:
    """Set the operation's start to now."""
    Operation.objects.filter(id=operation.id).update(starts_at=DatabaseNow())


def running(tasks, act="resubmit", **options) -> Operation:
    """Make a confirmed operation whose start is now."""
    operation = confirmed(tasks, act, **options)
    begin(operation)
    return operation


def pass_time(operation, seconds) -> None:
    """Refill the operation's rate limit as `seconds` would."""
    before = DatabaseNow() - timedelta(seconds=seconds)
    Operation.objects.filter(id=operation.id, tokens_at__isnull=False).update(tokens_at=before)


def advance(operation, by=None, *, seconds=1.0) -> Operation:
    """Advance an operation by one turn, `seconds` after the last one."""
    sql.run(runner.BEGIN, {"now": None})
    pass_time(operation, seconds)
    run_operations.advance(by or lead(), reach=3600.0)
    operation.refresh_from_db()
    return operation


def states(operation) -> dict[str, int]:
    """Return the number of the operation's items in each state that occurs."""
    counts: dict[str, int] = {}
    for state in OperationItem.objects.filter(operation=operation).values_list("state", flat=True):
        counts[state] = counts.get(state, 0) + 1
    return counts


def steps_of(tasks, name="hello"):
    return list(Step.objects.filter(task__in=tasks, name=name).order_by("id"))


def standing(task, state) -> Operation:
    """Make an operation in `state`, which holds one task."""
    if state == "draft":
        return drafted([task], "hold")
    if state == "approval":
        SupervisorPolicy.objects.update_or_create(id=1, defaults={"approve_items": 0})
    operation = confirmed([task], "hold")
    if state in {"running", "paused"}:
        Operation.objects.filter(id=operation.id).update(state="running")
    if state == "paused":
        assert controls.pause(operation.id, actor="ann") is None
    operation.refresh_from_db()
    assert operation.state == state
    return operation
