"""The audit finds what is planted, blames the right invariant and order, and is silent otherwise."""

import json
from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from orchestration import submission
from orchestration.agents.service_ledger import LedgerEntry
from orchestration.assurance.apps import QUEUE
from orchestration.assurance.audit import job, runner, snapshot
from orchestration.cluster.leader_election import Leadership
from orchestration.dead_letters import actions
from orchestration.dead_letters.actions import DeadLetterFilter
from orchestration.messaging import queues
from orchestration.models import (
    Alert,
    Attempt,
    AuditRun,
    Event,
    Policy,
    Step,
    StepPolicy,
    Submission,
    SupervisorPolicy,
    Task,
    TaskRequest,
    UndoRequest,
)
from orchestration.models.fields import DatabaseNow
from tests.support.audit_rows import CAUSE, TOTAL, no_route, orders
from tests.support.engine import claimed, in_error, new_task, reply_to, run_to_end, sweep
from tests.support.violations import plant, violations

pytestmark = pytest.mark.django_db

LEVEL = {"start": 50, "on_hand": 32, "reserved": 1, "shipped": 17}


@pytest.fixture
def rows():
    """Twenty orders at every stage, and the partners' ledgers."""
    made = orders(20, no_route())
    made.write()
    made.did("inventory", "mug", None, "level", None, dict(LEVEL))
    return made


def blamed(rows=None):
    return {(breach.invariant, breach.reference) for breach in violations(rows)}


def troubles(reference):
    """Return how many times invariant 12 is violated for `reference`."""
    return sum((breach.invariant, breach.reference) == (12, reference) for breach in violations())


STEP = "UPDATE orchestration_step s SET {} FROM orchestration_task t WHERE t.id = s.task_id AND t.reference = %(order)s AND s.name = '{}' AND s.direction = '{}'"  # noqa: E501
TASK = "UPDATE orchestration_task SET {} WHERE reference = %(order)s"
ORDER = "UPDATE orders_order SET {} WHERE id = %(order)s::uuid"
ATTEMPT = "UPDATE orchestration_attempt a SET {} FROM orchestration_step s, orchestration_task t WHERE s.id = a.step_id AND t.id = s.task_id AND t.reference = %(order)s AND s.name = '{}' AND s.direction = '{}'"  # noqa: E501
OF = "FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id WHERE t.reference = %(order)s AND s.name = '{}' AND s.direction = '{}'"  # noqa: E501
COPY = "INSERT INTO orchestration_attempt (step_id, number, generation, scheduler, agent, dispatched_at, ended_at, outcome, tries, error_code, error_message) SELECT s.id, {}, {}, 's', 'a', s.ended_at + interval '1 s', s.ended_at + interval '2 s', '{}', 1, '', '' "  # noqa: E501
TELL = "INSERT INTO orchestration_statusmessage (reply_to, task_id, number, kind, detail, created_at, reason) SELECT 'shop', id, {}, '{}', '{{}}', clock_timestamp() - interval '{}', '' FROM orchestration_task WHERE reference = %(order)s"  # noqa: E501
TWIN = "INSERT INTO orchestration_task (id, workflow, reference, state, priority, data, reply_to, owner_application, statuses, overdue, complete_by, created_at, ended_at) SELECT gen_random_uuid(), workflow, reference, state, priority, data, '', '', 0, overdue, complete_by, created_at, ended_at FROM orchestration_task WHERE reference = %(order)s"  # noqa: E501

# invariant, stage of the order, what is planted
IN_DATABASE = [
    (1, "processed", STEP.format("process_state = 'waiting', attempt = 0", "send_confirmation", "do")),
    (1, "waiting", STEP.format("process_state = 'waiting'", "create_shipment", "do")),
    (1, "waiting", STEP.format("process_state = 'processing', locked_by = 'x', attempt = 1, dispatched_at = clock_timestamp() - interval '1 h', complete_by = clock_timestamp() - interval '10 min'", "create_shipment", "do")),  # noqa: E501
    (1, "waiting", STEP.format("run_after = clock_timestamp() - interval '10 min'", "create_shipment", "do")),
    (1, "waiting", STEP.format("held_by_id = 4711", "create_shipment", "do")),
    (2, "processed", TASK.format("""data = data || '{"note": "other content"}'""")),
    (2, "processed", ORDER.format("total = total + 100")),
    (5, "processed", COPY.format(2, 1, "done") + OF.format("reserve_stock", "do")),
    (5, "processed", ATTEMPT.format("outcome = 'transient'", "create_shipment", "do")),
    (5, "waiting", STEP.format("process_state = 'pending'", "reserve_stock", "do")),
    (6, "processed", ATTEMPT.format("dispatched_at = a.dispatched_at - interval '10 min'", "capture_payment", "do")),  # noqa: E501
    (6, "processed", STEP.format("after = '{create_shipment,unheard_of}'", "capture_payment", "do")),
    (7, "undone", ATTEMPT.format("dispatched_at = a.dispatched_at - interval '5 s'", "create_shipment", "undo")),  # noqa: E501
    (7, "undone", STEP.format("process_state = 'cancelled'", "capture_payment", "undo")),
    (7, "undone", TASK.format("undo_at = NULL")),
    (7, "undone", STEP.format("attempt = 0, process_state = 'cancelled', outcome = ''", "capture_payment", "do")),  # noqa: E501
    (8, "retried", STEP.format("attempt = 5", "reserve_stock", "do")),
    (8, "retried", ATTEMPT.format("ended_at = a.ended_at + interval '1 h'", "reserve_stock", "do") + " AND a.number = 1"),  # noqa: E501
    (9, "retried", STEP.format("failure_count = 3", "reserve_stock", "do")),
    (9, "processed", STEP.format("failure_count = 1", "send_confirmation", "do")),
    (10, "retried", STEP.format("generation = 2", "reserve_stock", "do")),
    (10, "declined_once", ATTEMPT.format("generation = 1", "authorize_payment", "do") + " AND a.number = 2"),
    (10, "declined_once", "UPDATE orchestration_event e SET detail = '{\"new_key\": false, \"before\": 1, \"after\": 2}' FROM orchestration_task t WHERE t.id = e.task_id AND t.reference = %(order)s"),  # noqa: E501
    (11, "processed", TELL.format(2, "failed", "1 s")),
    (11, "processed", TELL.format(7, "completed", "1 s")),
    (11, "processed", ORDER.format("status = 'failed'")),
    (11, "undone", ORDER.format("status_number = 1, status = 'received'")),
    (11, "waiting", ORDER.format("""asked = '{"id": "00000000-0000-0000-0000-000000000001", "act": "cancel", "refused": ""}'""")),  # noqa: E501
    (12, "processed", STEP.format("locked_by = 'x', complete_by = clock_timestamp()", "send_confirmation", "do")),  # noqa: E501
    (1, "waiting", STEP.format("run_after = clock_timestamp() + interval '10 years'", "create_shipment", "do")),  # noqa: E501
    (1, "waiting", STEP.format("run_after = clock_timestamp() + interval '4 days', patience = '{\"wait\": 60}'", "create_shipment", "do")),  # noqa: E501
    (1, "error", STEP.format("resolve_by = clock_timestamp() + interval '9 years'", "create_shipment", "do")),
    (1, "waiting", STEP.format("process_state = 'processing', locked_by = 'x', attempt = 1, dispatched_at = clock_timestamp(), complete_by = clock_timestamp() + interval '3 days'", "create_shipment", "do")),  # noqa: E501
    (1, "waiting", STEP.format("agent = 'pigeons', pending_since = clock_timestamp() - interval '2 h'", "create_shipment", "do")),  # noqa: E501
    (1, "waiting", "INSERT INTO orchestration_undorequest (step_id, task_id, unmended, requested_at, requested_by, reason) SELECT s.id, t.id, false, clock_timestamp() - interval '2 days', 's', '' " + OF.format("create_shipment", "do")),  # noqa: E501
    (5, "processed", STEP.format("result = NULL", "create_shipment", "do")),
    (12, "processed", STEP.format("in_doubt = true", "create_shipment", "do")),
    (12, "waiting", STEP.format("priority = 2", "create_shipment", "do")),
    (12, "processed", TELL.format(2, "completed", "1 h")),
    (12, "error", "UPDATE orchestration_alert SET closed_at = clock_timestamp() WHERE %(order)s <> ''"),
    (12, "processed", TASK.format("ended_at = NULL")),
    (14, "error", STEP.format("incident_id = NULL", "create_shipment", "do")),
    (14, "error", "DELETE FROM orchestration_incidenthit WHERE %(order)s <> ''"),
    (14, "error", "UPDATE orchestration_incidenthit SET failures = 2 WHERE %(order)s <> ''"),
]  # fmt: skip


@pytest.mark.parametrize(("invariant", "stage", "statement"), IN_DATABASE)
def test_planted_violations_in_the_database_are_found(rows, invariant, stage, statement):
    order = rows.orders[stage]
    plant(statement, order=order)
    breaches = blamed(rows)
    assert (invariant, order) in breaches
    # a cause counts what its tasks say: it may be wrong with one of them
    assert {reference for _, reference in breaches} - {CAUSE} == {order}


def undone_without_its_effect(order, outcome="expired", *, in_doubt=False):
    """Have an order undone whose capture may have had its effect, and was cancelled for all that."""
    name, columns = (
        "capture_payment",
        f"outcome = '{outcome}', in_doubt = {in_doubt}, result = NULL",
    )
    plant(STEP.format(f"process_state = 'cancelled', {columns}", name, "do"), order=order)
    plant(ATTEMPT.format(f"outcome = '{outcome}'", name, "do"), order=order)
    undo = "process_state = 'cancelled', attempt = 0, dispatched_at = NULL, outcome = '', result = NULL"
    plant(
        f"DELETE FROM orchestration_attempt WHERE step_id = (SELECT s.id {OF.format(name, 'undo')})",
        order=order,
    )
    plant(STEP.format(undo, name, "undo"), order=order)
    return Step.objects.get(task__reference=order, name=name, direction="do")


@pytest.mark.parametrize("in_doubt", [False, True])
@pytest.mark.parametrize("outcome", ["expired", "unknown"])
def test_cancelled_step_that_may_have_had_its_effect_is_found(rows, outcome, in_doubt):
    order = rows.orders["undone"]
    undone_without_its_effect(order, outcome, in_doubt=in_doubt)
    rows.ledger.clear()  # as with most services
    assert blamed(rows) == {(7, order)}


def test_cancelled_step_in_doubt_without_such_an_attempt_is_found(rows):
    order = rows.orders["undone"]
    undone_without_its_effect(order, "transient", in_doubt=True)
    rows.ledger.clear()
    assert blamed(rows) == {(7, order)}


@pytest.mark.parametrize("shown_by", ["event", "absent", "rejected", "generation"])
def test_cancelled_step_that_was_settled_is_not_found(rows, shown_by):
    order = rows.orders["undone"]
    step = undone_without_its_effect(order)
    rows.ledger.clear()
    if shown_by == "event":
        Event.objects.create(task=step.task, step=step, kind="settled", actor="ada", attempt=1)
    elif shown_by == "generation":
        Event.objects.create(
            task=step.task, step=step, kind="resubmitted", actor="ada", attempt=1,
            detail={"new_key": True},
        )  # fmt: skip
        Step.objects.filter(id=step.id).update(generation=2)
    else:
        plant(COPY.format(2, 1, shown_by) + OF.format("capture_payment", "do"), order=order)
        Step.objects.filter(id=step.id).update(attempt=2, outcome=shown_by)
    assert blamed(rows) == set()


# what waits for long as it was asked to
ASKED_TO_WAIT = [
    ("waiting", "run_after = clock_timestamp() + interval '2 years', attempt = 0", "reserve_stock"),
    ("waiting", "run_after = clock_timestamp() + interval '23 h'", "create_shipment"),
    ("waiting", "run_after = clock_timestamp() + interval '7 days', extended_waits = 1", "create_shipment"),
    ("waiting", "run_after = clock_timestamp() + interval '4 days', patience = '{\"wait\": 400000}'",
     "create_shipment"),
    ("waiting", "agent = 'pigeons', pending_since = clock_timestamp() - interval '1 min'", "create_shipment"),
    ("error", "resolve_by = clock_timestamp() + interval '25 min'", "create_shipment"),
]  # fmt: skip


@pytest.mark.parametrize(("stage", "columns", "name"), ASKED_TO_WAIT)
def test_what_waits_as_long_as_it_may_is_not_found(rows, stage, columns, name):
    order = rows.orders[stage]
    if name == "reserve_stock":  # the first step: its time is the submission's
        task = Task.objects.get(reference=order)
        for model in (Attempt, Event):
            model.objects.filter(step__task=task).delete()
        Step.objects.filter(task=task).exclude(name=name).delete()
        plant(
            STEP.format(
                "process_state = 'pending', outcome = '', result = NULL, dispatched_at = NULL, ended_at = NULL, pending_since = clock_timestamp()",  # noqa: E501
                name,
                "do",
            ),
            order=order,
        )
        Task.objects.filter(id=task.id).update(state="pending")
    plant(STEP.format(columns, name, "do"), order=order)
    rows.ledger.clear()
    assert (1, order) not in blamed(rows)


def test_longer_time_to_mend_that_was_since_shortened_is_not_found(rows):
    order = rows.orders["error"]
    policy = Policy.objects.get_or_create(agent="shipping")[0]
    policy.resolve_within = 20 * 86_400.0
    policy.save()
    policy.resolve_within = 60.0
    policy.save()
    plant(
        STEP.format("resolve_by = clock_timestamp() + interval '15 days'", "create_shipment", "do"),
        order=order,
    )
    assert blamed(rows) == set()


def test_longer_time_to_mend_of_the_step_itself_is_not_found(rows):
    order = rows.orders["error"]
    workflow = Task.objects.get(reference=order).workflow
    own, _ = StepPolicy.objects.get_or_create(workflow=workflow, step="create_shipment")
    for seconds in (20 * 86_400.0, 60.0):
        own.resolve_within = seconds
        own.save()
    late = "resolve_by = clock_timestamp() + interval '15 days'"
    plant(STEP.format(late, "create_shipment", "do"), order=order)
    assert blamed(rows) == set()
    StepPolicy.objects.update(workflow="another")
    StepPolicy.history.update(workflow="another")
    assert (1, order) in blamed(rows)


def test_wait_for_an_undo_without_a_request_is_found(rows):
    """As after a request that was lost to an earlier one of the same step."""
    order = rows.orders["waiting"]
    step = Step.objects.get(task__reference=order, name="create_shipment")
    plant(
        STEP.format("run_after = clock_timestamp() + interval '23 h'", step.name, "do"), order=order
    )
    Event.objects.create(
        task=step.task, step=step, kind="undo_asked", actor="supervisor", attempt=0
    )
    request = UndoRequest.objects.create(step=step, task=step.task, unmended=False, reason="")
    assert blamed(rows) == set()
    request.delete()
    assert blamed(rows) == {(1, order)}


def stepped_back(order, seconds, *, still_later=False):
    """Have the clock go back by some seconds once the shipment was booked."""
    plant(
        ATTEMPT.format(
            f"dispatched_at = a.dispatched_at - interval '{seconds} s', ended_at = a.ended_at - interval '{seconds} s'",  # noqa: E501
            "capture_payment",
            "do",
        ),
        order=order,
    )
    if still_later:  # in the order of their ends it came first: so it was sent before
        plant(
            "UPDATE orchestration_attempt SET id = -id WHERE step_id = (SELECT s.id "
            + OF.format("capture_payment", "do")
            + ")",
            order=order,
        )


def test_small_step_back_of_the_clock_does_not_count_as_another_order(rows):
    order = rows.orders["processed"]
    stepped_back(order, 2.2)  # it was sent 1.7 s after the end of what is before it
    assert blamed(rows) == set()
    stepped_back(order, 3.0)
    assert blamed(rows) == {(6, order)}


def test_attempt_that_ended_before_what_it_comes_after_was_sent_too_early(rows):
    order = rows.orders["processed"]
    stepped_back(order, 2.2, still_later=True)
    assert blamed(rows) == {(6, order)}


def test_small_step_back_between_two_undos_or_attempts_is_none(rows):
    undone, retried = rows.orders["undone"], rows.orders["retried"]
    plant(
        ATTEMPT.format(
            "dispatched_at = a.dispatched_at - interval '2.2 s'", "create_shipment", "undo"
        ),
        order=undone,
    )
    plant(
        ATTEMPT.format("ended_at = a.ended_at + interval '0.9 s'", "reserve_stock", "do")
        + " AND a.number = 1",
        order=retried,
    )
    assert blamed(rows) == set()


@pytest.mark.parametrize(
    ("statement", "reference"),
    [
        (
            (
                "INSERT INTO orchestration_attempt (step_id, number, generation, scheduler, agent,"
                " dispatched_at, ended_at, outcome, tries, error_code, error_message)"
                " VALUES (4711, 1, 1, 's', 'a', now(), now(), 'done', 1, '', '')"
            ),
            "step 4711",
        ),
        (
            (
                "INSERT INTO orchestration_statusmessage (reply_to, task_id, number, kind, detail,"
                " created_at, reason) VALUES ('shop', '00000000-0000-7000-8000-000000000000', 1,"
                " 'received', '{}', now(), '')"
            ),
            "task 00000000-0000-7000-8000-000000000000",
        ),
        (
            (
                "UPDATE orchestration_step SET task_id = '00000000-0000-7000-8000-000000000000'"
                " WHERE id = (SELECT min(id) FROM orchestration_step)"
            ),
            "task 00000000-0000-7000-8000-000000000000",
        ),
    ],
)
def test_what_belongs_to_something_that_is_gone_is_found(rows, statement, reference):
    plant(statement)
    assert (2, reference) in blamed(rows)


MISCOUNTED = [
    "UPDATE orchestration_incident SET failures = failures + 1",
    "UPDATE orchestration_incident SET tasks = tasks + 1",
    "UPDATE orchestration_incident SET open_tasks = 0",
    """UPDATE orchestration_incident SET at_risk = '{"EUR": 100}'""",
    "UPDATE orchestration_incidenthit SET failures = 0",
    "INSERT INTO orchestration_incidenttally (incident_id, tasks) SELECT id, 1 FROM orchestration_incident",
    "UPDATE orchestration_task SET value = 300, currency = 'CHF' WHERE state = 'error'",
]


@pytest.mark.parametrize("statement", MISCOUNTED)
def test_incident_with_wrong_counts_is_found(rows, statement):
    plant(statement)
    assert blamed(rows) == {(14, CAUSE)}


def entry_of(rows, agent, order, kind):
    (entry,) = [row for row in rows.ledger[agent] if row.reference == order and row.kind == kind]
    return entry


def test_duplicate_tasks_of_an_order_are_found(rows):
    order = rows.orders["processed"]
    plant(TWIN, order=order)
    assert (2, order) in blamed(rows)


def test_missing_order_is_found(rows):
    order = rows.orders["processed"]
    plant("DELETE FROM orders_order WHERE id = %(order)s::uuid", order=order)
    assert {(1, order), (2, order)} <= blamed(rows)


def test_order_without_its_task_is_found(rows):
    order = rows.orders["waiting"]
    plant("DELETE FROM orchestration_task WHERE reference = %(order)s", order=order)
    assert (1, order) in blamed(rows)


def test_alert_without_a_cause_is_found(rows):
    order = rows.orders["error"]
    plant(
        "INSERT INTO orchestration_alert (fingerprint, severity, title, detail, count) "
        "VALUES ('step/a/b/c', 'critical', %(order)s, '', 1)",
        order=order,
    )
    assert blamed(rows) == {(12, "step/a/b/c")}


def test_two_open_alerts_of_one_cause_are_found(rows):
    plant(
        "INSERT INTO orchestration_alert (fingerprint, severity, title, detail, count) "
        "SELECT 'system/x', 'critical', 't', '', 1 FROM generate_series(1, 2)"
    )
    assert blamed(rows) == {(12, "system/x")}


def test_unresolved_refused_submission_is_found():
    Submission.objects.create(workflow="greet", reference="7", data=["no object"])
    submission.take(10)
    assert blamed() == set()  # its alert is open
    Alert.objects.update(closed_at=DatabaseNow())
    assert blamed() == {(12, "7")}
    actions.close(DeadLetterFilter(), by="ann", reason="a test")
    assert blamed() == set()


def test_untaken_submission_is_found():
    Submission.objects.create(
        workflow="greet", reference="7", data={}, created_at=DatabaseNow() - timedelta(hours=1)
    )
    assert blamed() == {(12, "7")}
    Submission.objects.update(retry_at=DatabaseNow() + timedelta(minutes=5), problem="failing")
    assert blamed() == set()
    actions.retry(DeadLetterFilter(), by="ann")
    assert blamed() == set()  # it could be taken since a moment ago


@pytest.fixture
def late_requests():
    """Two requests about task 7, made two and one hours ago, which no worker has carried out."""
    task = new_task("7")
    Task.objects.update(created_at=DatabaseNow() - timedelta(hours=3))
    for hours in (2, 1):
        TaskRequest.objects.create(
            request=uuid4(),
            workflow=task.workflow,
            reference=task.reference,
            what="undo",
            actor="customer",
            because="a test",
            created_at=DatabaseNow() - timedelta(hours=hours),
        )
    return TaskRequest.objects.order_by("id")


def test_request_not_carried_out_is_found(late_requests):
    assert troubles("7") == 1  # the second waits for the first
    TaskRequest.objects.filter(id=late_requests[0].id).update(done_at=DatabaseNow())
    assert troubles("7") == 0  # it could be carried out since a moment ago
    TaskRequest.objects.filter(id=late_requests[0].id).update(
        done_at=DatabaseNow() - timedelta(minutes=30)
    )
    assert troubles("7") == 1
    TaskRequest.objects.update(retry_at=DatabaseNow() + timedelta(minutes=5), problem="failing")
    assert troubles("7") == 0


def test_request_waits_for_its_tasks_submission(late_requests):
    Submission.objects.create(workflow="greet", reference="7", data={})
    assert troubles("7") == 0
    Submission.objects.all().delete()
    Task.objects.update(created_at=DatabaseNow())
    assert troubles("7") == 0


def test_request_waits_for_a_submission_that_is_set_aside(late_requests):
    Alert.objects.create(fingerprint="submission/greet", severity="critical", title="t")
    assert troubles("7") == 1
    Submission.objects.create(workflow="greet", reference="7", data={}, refused_at=DatabaseNow())
    assert troubles("7") == 1  # the task is there, so it does not wait
    TaskRequest.objects.update(reference="8")
    Submission.objects.update(reference="8")
    assert troubles("8") == 0
    Submission.objects.update(closed_at=DatabaseNow())
    assert troubles("8") == 0  # it could be carried out since a moment ago
    Submission.objects.update(closed_at=DatabaseNow() - timedelta(minutes=30))
    assert troubles("8") == 1


def test_unresolved_refused_request_is_found(late_requests):
    TaskRequest.objects.update(refused_at=DatabaseNow(), reason="not now")
    assert troubles("7") == 2
    plant(
        "INSERT INTO orchestration_alert (fingerprint, severity, title, detail, count) "
        "VALUES ('request/greet', 'critical', 't', '', 1)"
    )
    assert troubles("7") == 0


# invariant, stage, agent, kind of the entry, what becomes of it: gone, again, or another amount
IN_LEDGERS = [
    (1, "processed", "notification", "send", "gone"),
    (1, "processed", "shipping", "book", "gone"),
    (3, "processed", "payment", "capture", "again"),
    (3, "processed", "payment", "capture", "gone"),
    (3, "processed", "payment", "capture", "more"),
    (3, "undone", "payment", "refund", "gone"),
    (3, "processed", "payment", "authorize", "again"),
    (4, "processed", "inventory", "reserve", "gone"),
    (4, "undone", "inventory", "release", "gone"),
    (4, "processed", "inventory", "reserve", "again"),
    (4, "processed", "inventory", "reserve", "other"),
    (5, "processed", "shipping", "book", "again"),
    (7, "undone", "shipping", "cancel", "gone"),
    (10, "processed", "notification", "send", "twice"),
]


@pytest.mark.parametrize(("invariant", "stage", "agent", "kind", "fate"), IN_LEDGERS)
def test_planted_violations_in_a_ledger_are_found(rows, invariant, stage, agent, kind, fate):
    order = rows.orders[stage]
    entry = entry_of(rows, agent, order, kind)
    rows.ledger[agent].remove(entry)
    if fate == "again":
        other = entry.key.rsplit(":", 1)[0] + ":2"
        rows.ledger[agent] += [entry, changed(entry, key=other)]
    elif fate == "twice":
        rows.ledger[agent] += [entry, entry]
    elif fate != "gone":
        amount = {"amount": TOTAL + 1} if fate == "more" else {"detail": {"mug": 2}}
        rows.ledger[agent].append(changed(entry, **amount))
    breaches = blamed(rows)
    assert (invariant, order) in breaches
    # a cause counts what its tasks say: it may be wrong with one of them
    assert {reference for _, reference in breaches} - {CAUSE} == {order}


def changed(entry, **fields):
    known = {name: getattr(entry, name) for name in LedgerEntry.__slots__}
    return LedgerEntry(**{**known, **fields})


@pytest.mark.parametrize(
    "level",
    [
        {"on_hand": 31},
        {"start": 17, "on_hand": -1},
        {"warehouses": {"main": 1}},
        {"warehouses": {"main": -1, "south": LEVEL["on_hand"] + 1}},
    ],
)
def test_stock_that_does_not_add_up_is_found(rows, level):
    rows.ledger["inventory"].pop()
    rows.did("inventory", "mug", None, "level", None, {**LEVEL, **level})
    assert blamed(rows) == {(4, "mug")}


def test_effects_of_steps_that_were_never_sent_are_found(rows):
    order = rows.orders["waiting"]
    task = Task.objects.get(reference=order)
    rows.did("notification", order, f"{task.id}:send_confirmation:do:1", "send")
    assert blamed(rows) == {(6, order)}


def test_effects_under_unknown_keys_are_found(rows):
    order = rows.orders["processed"]
    task = Task.objects.get(reference=order)
    rows.did("notification", order, f"{task.id}:send_flowers:do:1", "send")
    assert blamed(rows) == {(10, order)}


def test_effects_for_unknown_orders_are_found(rows):
    rows.did("payment", "nobody", "other", "capture", 1)
    assert blamed(rows) == {(2, "nobody")}


def test_clean_data_has_no_findings(rows):
    assert violations(rows) == []
    rows.ledger.clear()
    assert violations(rows) == []


def test_tasks_processed_by_the_engine_have_no_findings():
    done, failed, doubtful = new_task(), new_task(), new_task()
    new_task()  # waits
    requests = {request.task: request for request in claimed()}
    from orchestration.transitions.replies import record
    from orchestration.transitions.resubmit import resubmit

    record([reply_to(requests[failed.id], "rejected")])
    record([reply_to(requests[doubtful.id], "unknown")])
    record([reply_to(requests[done.id])])
    assert violations() == []
    step = Step.objects.get(task=failed, name="hello")
    resubmit(step.id, attempt=1, actor="ada", reason="it is mended")
    run_to_end(done)
    assert done.state == "processed"
    assert violations() == []


def test_task_in_error_has_no_finding_before_and_after_its_undo():
    from orchestration.transitions.undo import undo

    step = in_error()
    assert violations() == []
    undo(step.task_id, actor="ada", reason="the customer does not want it any more")
    run_to_end(step.task)
    assert step.task.state == "undone"
    assert violations() == []


def test_task_changed_after_the_ledgers_were_read_is_not_compared(rows):
    order = rows.orders["processed"]
    rows.ledger["payment"] = [entry for entry in rows.ledger["payment"] if entry.reference != order]
    Task.objects.filter(reference=order).update(ended_at=timezone.now() + timedelta(seconds=5))
    assert blamed(rows) == set()


@pytest.mark.django_db(transaction=True)
class TestRun:
    """The whole run, in a transaction of its own."""

    def test_command_reports_and_keeps_its_findings(self, settings):
        settings.SANDBOX_URL = "http://elsewhere.example"  # so no partner has a ledger
        task = new_task()
        assert self.command("--no-ledgers")["violations"] == []
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            cursor.execute("UPDATE orchestration_task SET state = 'processing', statuses = 0")
            cursor.execute("UPDATE orchestration_step SET failure_count = 2")
            cursor.execute("SET session_replication_role = origin")
        out = StringIO()
        with pytest.raises(SystemExit) as ended:
            call_command("audit", "--no-ledgers", "--json", stdout=out, stderr=StringIO())
        assert ended.value.code == 1
        printed = json.loads(out.getvalue())
        assert printed["tasks"] == 1
        assert {(breach["invariant"], breach["reference"]) for breach in printed["violations"]} == {
            (9, task.reference)
        }
        assert AuditRun.objects.latest("id").violations == printed["violations"]
        alert = Alert.objects.get(fingerprint="audit/9")
        assert task.reference in alert.detail
        Step.objects.update(failure_count=0)
        runner.run("test")
        alert.refresh_from_db()
        assert alert.closed_at

    def test_unreadable_ledger_is_a_usage_error_or_an_alert(self):
        with pytest.raises(snapshot.Unreadable):
            runner.run("ada")
        assert runner.run(runner.HOURLY).violations == []
        assert Alert.objects.get(fingerprint="audit/ledgers").closed_at is None

    def test_supervisor_rings_and_the_worker_audits(self, settings):
        settings.SANDBOX_URL = "http://elsewhere.example"
        sweep(Leadership(holder="supervisor-1", epoch=1))
        assert queues.waiting([QUEUE]) == [QUEUE]
        job.run()
        assert AuditRun.objects.get(by=runner.DAILY).ended_at
        sweep(Leadership(holder="supervisor-1", epoch=1))
        assert queues.waiting([QUEUE]) == []

    def test_audit_is_due_once_an_hour(self):
        assert runner.due()
        assert runner.run(runner.HOURLY) is not None
        assert not runner.due()
        assert runner.run(runner.HOURLY) is None
        SupervisorPolicy.objects.update_or_create(id=1, defaults={"audit_every": 0})
        AuditRun.objects.all().delete()
        assert not runner.due()

    def command(self, *options):
        out = StringIO()
        call_command("audit", "--json", *options, stdout=out, stderr=StringIO())
        return json.loads(out.getvalue())


def test_effect_under_the_reference_of_another_task_counts_once(rows):
    """As a refund's is: the provider knows it by its order, whose task may be of the same slice."""
    order, other = rows.orders["processed"], rows.orders["waiting"]
    sent = rows.ledger["notification"]
    (entry,) = [row for row in sent if row.reference == order and row.kind == "send"]
    sent[sent.index(entry)] = changed(entry, reference=other)
    assert blamed(rows) == set()


def test_parcel_too_many_is_found(rows):
    """The other carrier has a parcel, too, under a key of its own."""
    order = rows.orders["processed"]
    rows.ledger["courier"] = [changed(entry_of(rows, "shipping", order, "book"), key="other")]
    assert (4, order) in blamed(rows)
