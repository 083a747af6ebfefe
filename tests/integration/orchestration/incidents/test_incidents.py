"""Failures by cause: counted as they happen, exactly, and what becomes of each cause."""

from collections import Counter
from datetime import timedelta
from importlib import import_module
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration.assurance.audit import runner, snapshot
from orchestration.incidents import actions, aggregation
from orchestration.incidents.state import QUIET
from orchestration.models import (
    Alert,
    Incident,
    IncidentHit,
    IncidentHour,
    IncidentTally,
    Notification,
    NotificationChannel,
    Policy,
    RollUpMark,
    Step,
    Task,
)
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import done_by_hand, resubmit
from orchestration.transitions.undo import undo
from tests.support.engine import (
    claimed,
    new_task,
    postpone_retries,
    reply_to,
    run_to_end,
    staff,
    step_of,
    sweep,
)
from tests.support.operators import LEADER

pytestmark = pytest.mark.django_db
CLOSED = "card pi_{} was declined: account closed"
LIMIT = "limit of {} EUR exceeded for https://api.example.com/v1/charges/{}"


@pytest.fixture(autouse=True)
def _staffed(db):
    staff()
    Policy.objects.filter(agent="greeter").update(window=1000)


def reject(requests, code="declined", message="it was refused"):
    """Let requests be rejected, each with ids of its own in the message."""
    return record(
        [
            reply_to(
                request, "rejected", code=code, message=message.format(uuid4().hex, uuid4().hex)
            )
            for request in requests
        ]
    )


def failing(count, **words):
    """Return tasks whose first step was rejected."""
    tasks = [new_task() for _ in range(count)]
    while requests := claimed():
        reject(requests, **words)
    return tasks


def fold():
    aggregation.aggregate("supervisor-1")


def only() -> Incident:
    fold()
    return Incident.objects.get()


def again(tasks, name="hello", by="ann"):
    """Resubmit the failed steps of tasks."""
    for task in tasks:
        step = step_of(task, name)
        assert resubmit(step.id, attempt=step.attempt, actor=by, reason="mended") is None


def last_event(incident):
    return incident.events.order_by("-id").first()


def kinds(incident):
    return list(incident.events.order_by("id").values_list("detail__what", flat=True))


class TestFiveHundredFailuresOfTwoKinds:
    @pytest.fixture
    def two(self):
        closed = failing(400, code="account_closed", message=CLOSED)
        limit = failing(100, code="limit", message=LIMIT)
        fold()
        return closed, limit

    def test_are_two_incidents_and_two_alerts(self, two):
        causes = Incident.objects.order_by("-tasks")
        assert [(row.code, row.failures, row.tasks, row.open_tasks) for row in causes] == [
            ("account_closed", 400, 400, 400),
            ("limit", 100, 100, 100),
        ]
        assert causes[0].message == "card <#> was declined: account closed"
        assert Alert.objects.filter(closed_at=None).count() == 2
        assert Counter(Step.objects.values_list("incident", flat=True))[causes[0].id] == 400

    def test_one_mended_and_both_resubmitted_the_other_returns(self, two):
        closed, limit = two
        again(closed + limit)
        fold()
        assert set(Incident.objects.values_list("state", "open_tasks")) == {("retrying", 0)}
        bad = {task.id for task in limit}
        while requests := claimed():
            reject([sent for sent in requests if sent.task in bad], "limit", LIMIT)
            record([reply_to(sent) for sent in requests if sent.task not in bad])
        fold()
        mended, returned = Incident.objects.order_by("-tasks")
        assert (mended.state, mended.open_tasks, mended.failures) == ("resolved", 0, 400)
        assert (returned.state, returned.open_tasks, returned.failures) == ("returned", 100, 200)
        assert returned.tasks == 100
        assert kinds(mended) == ["opened", "retried", "resolved"]
        assert kinds(returned) == ["opened", "retried", "returned"]
        assert last_event(returned).reason == "100 tasks failed again"
        retried = mended.events.get(detail__what="retried")
        assert (retried.actor, retried.reason) == ("ann", "400 tasks")
        (alert,) = Alert.objects.filter(closed_at=None)
        assert alert.incident == returned


def test_counts_equal_a_recount():
    tasks = failing(4, code="x") + failing(2, code="y")
    Task.objects.filter(id=tasks[0].id).update(value=7, currency="EUR")
    assert violations() == [(14, Incident.objects.get(code="x").fingerprint)]  # changed behind it
    Task.objects.update(value=0)
    again(tasks[:2])
    reject(claimed(), code="y")
    assert violations() == []  # the tallies belong to the counts
    fold()
    again(tasks[4:])
    assert undo(tasks[3].id, actor="ann", reason="not wanted") is None
    run_to_end(tasks[4])
    sweep(LEADER)
    assert violations() == []


def violations():
    snapshot.fill(snapshot.prepare())
    return [
        (breach.invariant, breach.reference) for breach in runner.find() if breach.invariant == 14
    ]


def test_queries_of_a_batch_are_independent_of_its_failures():
    costs = []
    for count in (1, 1, 150):  # the first opens the incident
        [new_task() for _ in range(count)]
        requests = claimed()
        with CaptureQueriesContext(connection) as queries:
            reject(requests, message=CLOSED)
        costs.append(len(queries))
    assert costs[1] == costs[2] <= costs[0]


def test_queries_of_a_sweep_are_independent_of_its_failures():
    postpone_retries()
    # roll-ups are due by the clock: in no sweep, however slow the test
    RollUpMark.objects.update(noted_until=DatabaseNow() + timedelta(hours=1))
    costs = []
    for count in (1, 1, 150):
        [new_task() for _ in range(count)]
        record([reply_to(sent, "transient", message=f"busy {sent.step}") for sent in claimed()])
        staff()
        with CaptureQueriesContext(connection) as queries:
            sweep(LEADER)
        costs.append(len(queries))
    assert costs[2] <= costs[1] + 2  # it may also wake what failed before


def test_failed_attempts_are_counted_before_a_step_is_in_error():
    task = new_task()
    record([reply_to(sent, "transient", message="busy, try in 7 s") for sent in claimed()])
    sweep(LEADER)
    incident = Incident.objects.get()
    assert (incident.failures, incident.tasks, incident.open_tasks) == (1, 1, 0)
    assert (incident.state, incident.severity, incident.outcome) == ("new", "warning", "transient")
    assert incident.message == "busy, try in <#> s"
    assert step_of(task).incident == incident
    assert not Alert.objects.exists()


def test_incident_resolves_after_silence_once_all_steps_are_done():
    task = new_task()
    record([reply_to(sent, "transient") for sent in claimed()])
    sweep(LEADER)
    Step.objects.update(run_after=None)
    run_to_end(task)
    sweep(LEADER)
    assert Incident.objects.get().state == "new"

    Incident.objects.update(last_seen=DatabaseNow() - timedelta(seconds=QUIET + 1))
    sweep(LEADER)
    assert Incident.objects.get().state == "resolved"


def test_value_at_risk_counts_tasks_in_error():
    first, second = (new_task() for _ in range(2))
    Task.objects.filter(id=first.id).update(value=500, currency="EUR")
    Task.objects.filter(id=second.id).update(value=300, currency="CHF")
    reject(claimed())
    assert only().at_risk == {"EUR": 500, "CHF": 300}
    again([first])
    assert only().at_risk == {"CHF": 300}


def test_each_way_out_of_error_is_counted():
    first, second, third = failing(3)
    step = step_of(first)
    done_by_hand(step.id, attempt=step.attempt, actor="ann", reason="by phone", result={"id": "g"})
    assert only().open_tasks == 2
    assert undo(second.id, actor="ann", reason="not wanted") is None
    assert only().open_tasks == 1
    again([third])
    assert only().open_tasks == 0
    assert IncidentHit.objects.filter(retried_at=None).count() == 2


def test_muted_incident_sends_no_notice_until_unmuted():
    NotificationChannel.objects.create(name="Ann", kind="email", address="ann@example.com")
    failing(1)
    incident = only()
    assert Notification.objects.count() == 1
    actions.mute(incident.id, seen=last_event(incident).id, by="lea", reason="known")
    again(Task.objects.all())
    reject(claimed())
    assert only().state == "muted"
    assert Alert.objects.filter(closed_at=None).count() == 1
    assert Notification.objects.filter(kind="opened").count() == 1
    actions.unmute(incident.id, seen=last_event(incident).id, by="lea")
    assert Notification.objects.filter(kind="opened").count() == 2
    assert only().state == "new"


def test_mute_expires():
    failing(1)
    incident = only()
    actions.mute(incident.id, seen=last_event(incident).id, by="lea", reason="known", hours=1)
    fold()
    assert only().state == "muted"
    Incident.objects.update(muted_until=DatabaseNow())
    assert only().state == "new"
    assert kinds(incident)[-2:] == ["muted", "unmuted"]


def test_second_action_names_the_first_user():
    failing(1)
    incident = only()
    seen = last_event(incident).id
    actions.note(incident.id, by="bob", text="I wonder")
    actions.acknowledge(incident.id, seen=seen, by="ann")
    with pytest.raises(actions.Conflict) as conflict:
        actions.acknowledge(incident.id, seen=seen, by="bob")
    assert conflict.value.event.actor == "ann"
    assert only().state == "known"


def test_incident_with_affected_tasks_cannot_be_resolved():
    failing(1)
    incident = only()
    with pytest.raises(actions.Conflict, match="Tasks are in error by it"):
        actions.resolve(incident.id, seen=last_event(incident).id, by="ann")


def test_ever_changing_messages_of_a_service_become_one_cause(monkeypatch):
    monkeypatch.setattr(import_module("orchestration.incidents.tallies"), "MAX_CAUSES", 3)
    words = ["ant", "bee", "cat", "dog", "elk", "fox"]
    for word in words:
        failing(1, message=f"the {word} says no")
    failing(2, message="the ant says no")  # known causes are still distinguished
    failing(1, code="other", message="the bee says no")
    fold()
    causes = Incident.objects.filter(code="declined").order_by("id")
    assert list(causes.values_list("message", "failures")) == [
        ("the ant says no", 3), ("the bee says no", 1), ("the cat says no", 1), ("<various>", 3),
    ]  # fmt: skip
    assert Incident.objects.get(code="other").message == "the bee says no"


def test_ever_changing_codes_of_a_service_become_one_cause_with_one_alert(monkeypatch):
    tallies = import_module("orchestration.incidents.tallies")
    monkeypatch.setattr(tallies, "MAX_CODES", 3)
    monkeypatch.setattr(tallies, "MAX_CAUSES", 2)
    for number in range(1, 7):
        failing(1, code=f"card_{number}", message=f"no {chr(64 + number)}")
    for word in ("ant", "bee", "cat"):
        failing(1, code="card_1", message=f"the {word} says no")  # a known code is still one
    fold()
    causes = Incident.objects.order_by("id").values_list("code", "message", "failures")
    assert list(causes) == [
        ("card_1", "no A", 1), ("card_2", "no B", 1), ("card_3", "no C", 1),
        ("<various>", "<various>", 3),
        ("card_1", "the ant says no", 1), ("card_1", "<various>", 2),
    ]  # fmt: skip
    assert Alert.objects.filter(closed_at=None).count() == len(causes)


def test_trend_is_kept_by_the_hour():
    failing(3)
    fold()
    failing(2)
    fold()
    assert IncidentHour.objects.get().failures == 5
    assert not IncidentTally.objects.exists()
