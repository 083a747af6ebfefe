"""Lanes: a condition is the same in the ORM and in SQL; a failure reads nothing of a row."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import BooleanField
from django.db.models.expressions import RawSQL
from django.test.utils import CaptureQueriesContext

from orchestration import conf, task_requests
from orchestration.alerting import alerts
from orchestration.applications import failed_submissions, status_messages
from orchestration.database import sql
from orchestration.database.lane import Problem, State
from orchestration.models import (
    DeadLetter,
    Notification,
    NotificationChannel,
    StatusMessage,
    Submission,
    TaskRequest,
)
from orchestration.models.alert import Severity
from orchestration.models.fields import DatabaseNow
from orchestration.models.inbox import INBOX_LETTERS, PUSHES, STATUSES, SUBMISSIONS
from orchestration.models.notification import NOTIFICATIONS
from orchestration.models.request import REQUESTS
from orchestration.registry import NotRegistered
from orchestration.workflows.workflow import Refused

pytestmark = pytest.mark.django_db
EARLIER = DatabaseNow() - timedelta(minutes=1)
LATER = DatabaseNow() + timedelta(hours=1)


def submission(**fields):
    return Submission.objects.create(workflow="greet", reference=uuid4().hex, data={}, **fields)


def request(**fields):
    return TaskRequest.objects.create(
        request=uuid4(), workflow="greet", reference="7", actor="me", what="undo", **fields
    )


def status(**fields):
    return StatusMessage.objects.create(reply_to="shop", number=0, kind="closed", **fields)


def letter(**fields):
    return DeadLetter.objects.create(**{"queue": "scheduler", "reason": "x", "tries": 1} | fields)


def notification(**fields):
    channel = NotificationChannel.objects.create(name=uuid4().hex, kind="email", address="a@b.c")
    alert = alerts.raise_alert(uuid4().hex, severity=Severity.WARNING, title="a test")
    Notification.objects.filter(alert_id=alert).delete()
    return Notification.objects.create(alert_id=alert, channel=channel, kind="opened", **fields)


LANES = (SUBMISSIONS, REQUESTS, STATUSES, INBOX_LETTERS, NOTIFICATIONS)
MAKE = dict(
    zip(
        [lane.name for lane in LANES],
        (submission, request, status, letter, notification),
        strict=True,
    )
)
CONDITIONS = ("open", "fresh", "timed", "retries", "due", "set_aside", "closed", "failed")


def ends(lane):
    """Return the fields of rows of a lane at each point of their lives."""
    failed = {lane.error: "x"} if lane.error else {}
    if lane.problem:
        failed[lane.problem] = Problem.FAILING
    yield {}
    for time in (EARLIER, LATER):
        yield {lane.due_at: time, **failed}
    if lane.problem:
        yield {lane.due_at: LATER, **failed, lane.problem: Problem.UNKNOWN}
    if lane.refused_at:
        yield {lane.refused_at: EARLIER, lane.error: "x"}
    if lane.closed_at:
        yield {lane.refused_at: EARLIER, lane.closed_at: EARLIER, lane.error: "x"}
    if lane.done_at:
        yield {lane.done_at: EARLIER}


@pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)
def test_condition_is_the_same_in_sql(lane):
    rows = [MAKE[lane.name](**fields) for fields in ends(lane)]
    conditions = [getattr(lane, name) for name in CONDITIONS if name != "closed" or lane.closed_at]
    for which in [*conditions, *lane.states.values()]:
        text = RawSQL(lane.where(which, f'"{lane.table}"'), (), BooleanField())
        assert set(lane.rows.filter(which)) == set(lane.rows.filter(text))
    assert len(rows) == lane.rows.count()


@pytest.mark.parametrize("lane", LANES[:4], ids=lambda lane: lane.name)
def test_failed_row_has_one_state(lane):
    for fields in ends(lane):
        MAKE[lane.name](**fields)
    states = {state: set(lane.in_state(state)) for state in lane.states}
    assert sum(map(len, states.values())) == len(set().union(*states.values()))
    assert set(lane.in_state("")) == set().union(
        *(rows for state, rows in states.items() if state != State.CLOSED)
    )
    for state, rows in states.items():
        read = lane.rows.filter(id__in=[row.id for row in rows]).annotate(state=lane.state)
        assert {row.state for row in read} <= {state}
    assert not lane.in_state("no such state").exists()


@pytest.mark.parametrize("lane", [SUBMISSIONS, REQUESTS, STATUSES], ids=lambda lane: lane.name)
def test_rows_that_were_overlooked_or_are_due_again_are_overdue(lane):
    def is_overdue():
        return sql.run(f"SELECT {lane.is_overdue()}", {})[0][0]

    make = MAKE[lane.name]
    young = make()
    make(**{lane.due_at: LATER})
    make(**{lane.refused_at: EARLIER, lane.error: "x"})
    assert not is_overdue()
    young.delete()
    for fields in ({lane.due_at: EARLIER},
                   {"created_at": DatabaseNow() - timedelta(seconds=2 * conf.RERING_AFTER_S)}):  # fmt: skip
        row = make(**fields)
        assert is_overdue()
        row.delete()
    assert not sql.run(f"SELECT {lane.is_overdue('false')}", {})[0][0]


def test_leased_row_fails_only_under_its_claim():
    row = status(send_after=EARLIER, tries=3)
    assert PUSHES.fail([row.id], "x", tries=2) == []
    (failure,) = PUSHES.fail([row.id], "x", tries=3, chance=lambda: 1.0)
    assert (failure.group, failure.tries, failure.refused) == ("shop", 3, False)
    row.refresh_from_db()
    wait = row.send_after - StatusMessage.objects.annotate(now=DatabaseNow()).get().now
    assert wait.total_seconds() == pytest.approx(4 * conf.NOTIFICATION_WAIT_S, abs=5)


@pytest.mark.parametrize("lane", LANES[:4], ids=lambda lane: lane.name)
def test_row_is_retried_as_if_it_had_not_failed_and_closed_permanently(lane):
    row = MAKE[lane.name](**({lane.due_at: None} | dict(list(ends(lane))[-2])))
    acted = {"ids": [row.id]}
    sql.run(lane.retry(), acted)
    assert lane.rows.filter(lane.due).get().tries == 0
    sql.run(lane.close(), acted)
    assert list(lane.rows.exclude(lane.closed) if lane.closed_at else lane.rows) == []


@pytest.mark.parametrize("error", [Refused("no"), ValueError("no"), NotRegistered("no")])
@pytest.mark.parametrize(
    ("lane", "fail", "content"),
    [
        (SUBMISSIONS, failed_submissions.fail, ("data",)),
        (REQUESTS, task_requests._fail, ("amendment", "note")),
        (STATUSES, status_messages._fail, ("detail", "progress", "created_at")),
    ],
    ids=lambda part: getattr(part, "name", None),
)
def test_what_fails_is_not_read(lane, fail, content, error):
    row = MAKE[lane.name]()
    with CaptureQueriesContext(connection) as asked:
        fail(row.id, error)
    assert lane.rows.filter(lane.failed).count() == 1
    assert lane.rows.filter(lane.set_aside).count() == isinstance(error, Refused)
    about = [query["sql"] for query in asked if lane.table in query["sql"]]
    assert about
    assert not [text for text in about for name in content if f'"{name}"' in text]
