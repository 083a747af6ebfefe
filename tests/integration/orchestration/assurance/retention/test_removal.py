"""Old tasks go with all that belongs to them, nothing else does, and their references stay taken."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from orchestration import conf, registry, submission
from orchestration.api import submit
from orchestration.assurance.retention import belongings, records, removal
from orchestration.cluster import leader_election
from orchestration.cluster.leader_memory import Memory
from orchestration.housekeeping import housekeeper
from orchestration.models import (
    Alert,
    Attempt,
    Event,
    Hold,
    Incident,
    IncidentHit,
    Notification,
    NotificationChannel,
    Operation,
    OperationItem,
    RemovedTask,
    RetentionPolicy,
    StatusMessage,
    Step,
    Submission,
    SupervisorPolicy,
    Task,
    TaskRequest,
)
from orchestration.models.fields import DatabaseNow
from tests.support.audit_rows import CAUSE, no_route, orders
from tests.support.engine import run_to_end
from tests.support.plans import explained
from tests.support.violations import violations

pytestmark = pytest.mark.django_db

LONG_AGO = timedelta(days=2)
OPEN = {"error", "waiting"}


@pytest.fixture
def rows():
    """Twenty orders at every stage; those that ended did so two days ago, and are kept for one."""
    made = orders(20, no_route())
    made.write()
    age()
    return made


def age(**which):
    Task.objects.filter(ended_at__isnull=False, **which).update(ended_at=DatabaseNow() - LONG_AGO)
    RetentionPolicy.objects.update(keep_days=1)


def left():
    return set(Task.objects.values_list("reference", flat=True))


def test_old_tasks_go_with_all_that_belongs_to_them(rows):
    step = Step.objects.filter(task__reference=rows.orders["processed"]).first()
    Event.objects.create(task=step.task, step=step, kind="retry", actor="a")
    assert removal.remove_due(60) == 18
    assert left() == {rows.orders[stage] for stage in OPEN}
    remaining = set(Step.objects.values_list("id", flat=True))
    assert set(Attempt.objects.values_list("step", flat=True)) <= remaining
    assert not Event.objects.filter(kind="retry").exists()
    assert RemovedTask.objects.count() == 18
    assert violations(rows) == []


def test_tasks_are_kept_as_long_as_their_workflow_says(rows):
    RetentionPolicy.objects.update(keep_days=3)
    assert removal.remove_due(60) == 0
    RetentionPolicy.objects.update(keep_days=None)
    assert removal.remove_due(60) == 0
    assert len(left()) == 20


def held(task):
    Hold.objects.create(scope="task", task=task, cause="hand", reason="a lawyer asked", actor="ann")


def in_an_operation(task):
    operation = Operation.objects.create(
        act="undo", state="running", reason="r", actor="ann", selection={}
    )
    OperationItem.objects.create(operation=operation, task=task, seen=task.state)


def with_a_message(task):
    StatusMessage.objects.create(reply_to="shop", task=task, number=2, kind="completed")


def with_a_request(task):
    TaskRequest.objects.create(
        request=uuid4(),
        workflow=task.workflow,
        reference=task.reference,
        what="undo",
        actor="customer",
        because="b",
    )


@pytest.mark.parametrize("keep", [held, in_an_operation, with_a_message, with_a_request])
def test_task_that_something_still_needs_is_kept(rows, keep):
    task = Task.objects.get(reference=rows.orders["processed"])
    keep(task)
    assert removal.remove_due(60) == 17
    assert task.reference in left()


def test_task_whose_undo_began_meanwhile_is_kept(rows):
    task = Task.objects.get(reference=rows.orders["processed"])
    before = timezone.now()
    (first, *_) = removal.find(task.workflow, before, 1).ids
    Task.objects.filter(id=first).update(state="undoing", undo_at=DatabaseNow(), ended_at=None)
    assert removal.remove(task.workflow, [first], before) == 0


def test_counts_of_incidents_and_operations_stay_right(rows):
    task = Task.objects.get(reference=rows.orders["retried"])
    step = task.steps.get(name="reserve_stock")
    cause = Incident.objects.get(fingerprint=CAUSE)
    IncidentHit.objects.create(incident=cause, step=step)
    Incident.objects.update(failures=2, tasks=2)
    operation = Operation.objects.create(
        act="resubmit",
        state="ended",
        reason="r",
        actor="ann",
        selection={},
        items=1,
        fixed=1,
        ended_at=DatabaseNow(),
    )
    OperationItem.objects.create(
        operation=operation,
        task=task,
        step=step,
        seen="error",
        state="fixed",
        ended_at=DatabaseNow(),
    )
    assert violations(rows) == []
    assert removal.remove_due(60) == 18
    cause.refresh_from_db()
    operation.refresh_from_db()
    assert (cause.removed_tasks, cause.removed_failures, operation.removed_items) == (1, 1, 1)
    assert violations(rows) == []


def posted(reference, **data):
    submit("greet", reference=reference, data=data)
    submission.take(10)


@pytest.mark.parametrize("line", ["fresh", "retries"])
def test_reference_of_a_removed_task_stays_taken(line):
    posted("42", name="Ada")
    run_to_end(Task.objects.get())
    StatusMessage.objects.all().delete()
    age()
    assert removal.remove_due(60) == 1
    posted("42", name="Ada")
    assert not Task.objects.exists()
    assert not Submission.objects.exists()  # the same again: dropped
    submit("greet", reference="42", data={"name": "Bob"})
    if line == "retries":
        Submission.objects.update(retry_at=DatabaseNow())
    submission.take(10)
    assert not Task.objects.exists()
    assert "removed" in Submission.objects.get(refused_at__isnull=False).reason
    posted("43", name="Bob")
    assert left() == {"43"}


def test_application_removes_its_own_rows_or_nothing_is_removed(rows, monkeypatch):
    posted("42", name="Ada")
    run_to_end(Task.objects.get(reference="42"))
    age(reference="42")
    removed = []
    greet = registry.workflows["greet"]
    monkeypatch.setitem(registry.workflows, "greet", replace(greet, remove=removed.extend))
    assert removal.remove_due(60) == 19
    assert removed == ["42"]


def test_workflow_whose_application_fails_does_not_stop_the_others(rows, monkeypatch):
    def fail(_references):
        raise ValueError("no")

    posted("42", name="Ada")
    run_to_end(Task.objects.get(reference="42"))
    age(reference="42")
    greet = registry.workflows["greet"]
    monkeypatch.setitem(registry.workflows, "greet", replace(greet, remove=fail))
    with pytest.raises(ExceptionGroup):
        removal.remove_due(60)
    assert left() == {"42", *(rows.orders[stage] for stage in OPEN)}


def test_housekeeper_goes_on_with_each_sweep_while_there_is_more(rows, monkeypatch):
    monkeypatch.setattr(conf, "REMOVAL_BATCH_SIZE", 5)
    monkeypatch.setattr(conf, "REMOVAL_BUDGET_S", 0.0)
    leadership = leader_election.acquire("one", name=leader_election.HOUSEKEEPER)
    memory = Memory()  # so that only the first sweep runs duties for their interval
    removed = [housekeeper.sweep(leadership, memory)["removed"] for _ in range(5)]
    assert removed == [5, 5, 5, 3, 0]


def test_housekeeper_leaves_old_tasks_to_the_archive(rows, settings):
    settings.ARCHIVE_DIR = "/archive"
    leadership = leader_election.acquire("one", name=leader_election.HOUSEKEEPER)
    assert housekeeper.sweep(leadership)["removed"] == 0


def test_look_reads_few_tasks_of_other_workflows_and_each_once(rows, monkeypatch):
    monkeypatch.setattr(conf, "REMOVAL_LOOK", 4)
    for minute, task in enumerate(Task.objects.filter(ended_at__isnull=False)):
        Task.objects.filter(id=task.id).update(
            ended_at=DatabaseNow() - LONG_AGO + timedelta(minutes=minute)
        )
    looks, since = 0, None
    while True:
        due = removal.find("greet", timezone.now(), 4, since=since)
        looks, since = looks + 1, due.looked_until
        assert due.ids == []
        if not due.more:
            break
    assert looks == 6  # of 4 tasks each, that begin with the last of the look before


def test_every_table_that_refers_to_a_task_is_known():
    known = {table.name for table in belongings.TABLES}
    kept_for = {"orchestration_undorequest"}  # a task with one is not removed
    for model in (Task, Step):
        for relation in model._meta.related_objects:
            assert relation.related_model._meta.db_table in known | kept_for


@pytest.mark.parametrize("table", belongings.TABLES, ids=lambda table: table.name)
def test_belongings_are_found_by_an_index(rows, table):
    task = Task.objects.first()
    steps = list(task.steps.values_list("id", flat=True))
    statement = f"DELETE FROM {table.name} WHERE {table.where}"
    plan = explained(statement, {"tasks": [str(task.id)], "steps": steps})
    assert any(node.get("Index Name", "").startswith(table.index) for node in plan)


def test_next_tasks_come_from_an_index_in_order(rows):
    parameters = {"workflow": "greet", "before": timezone.now(), "since": None, "look": 10}
    plan = explained(removal.NEXT, parameters, off=("seqscan", "sort", "bitmapscan"))
    assert [node["Node Type"] for node in plan] == ["Limit", "Index Scan"]
    assert plan[1]["Index Name"] == "task_by_end"
    assert "ended_at <" in plan[1]["Index Cond"]


def test_old_records_go_and_others_stay():
    channel = NotificationChannel.objects.create(name="c", kind="email", address="a@example.org")
    for fingerprint, closed_at in [("a", LONG_AGO), ("b", timedelta(0)), ("c", None)]:
        at = None if closed_at is None else timezone.now() - closed_at
        alert = Alert.objects.create(
            fingerprint=fingerprint, severity="warning", title="t", closed_at=at
        )
        Notification.objects.create(alert=alert, channel=channel, kind="opened")
    for key, left_for in [("old", -1), ("new", 1)]:
        Session.objects.create(
            session_key=key, session_data="", expire_date=timezone.now() + timedelta(days=left_for)
        )
    SupervisorPolicy.objects.update(keep_records_days=1)
    assert records.remove_old() == 2
    assert set(Alert.objects.values_list("fingerprint", flat=True)) == {"b", "c"}
    assert Notification.objects.count() == 2
    assert Session.objects.get().session_key == "new"


@pytest.mark.parametrize("rule", records.RULES, ids=lambda rule: rule.table)
def test_rules_are_statements(rule):
    assert records._remove(rule, 1.0) == 0
