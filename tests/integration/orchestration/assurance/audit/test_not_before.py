"""What the audit says of steps that wait for their time."""

import pytest

from orchestration.models import Step, Task
from tests.support.audit_rows import no_route, orders
from tests.support.violations import plant, violations

pytestmark = pytest.mark.django_db

NAME = "create_shipment"
WAIT = (
    "INSERT INTO orchestration_wait (step_id, task_id, agent, external_id, person, signal, due_at, fixed,"
    " looks, asked_last, reminded) SELECT s.id, t.id, s.agent, '', '', '',"
    " clock_timestamp() + %(after)s::interval, false, 0, false, 0"
    " FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id"
    " WHERE t.reference = %(order)s AND s.name = %(name)s AND s.direction = 'do'"
)
TIMED = (
    "process_state = 'waiting', pending_since = clock_timestamp() - interval '2 days', attempt = 0, "
    "run_after = NULL, error_code = '', error_message = '', incident_id = NULL, failure_count = 0"
)


@pytest.fixture
def rows():
    """Twenty orders at every stage, and the partners' ledgers."""
    made = orders(20, no_route())
    made.write()
    made.did(
        "inventory", "mug", None, "level", None,
        {"start": 50, "on_hand": 32, "reserved": 1, "shipped": 17},
    )  # fmt: skip
    return made


def change(reference, columns, name=NAME):
    plant(
        f"UPDATE orchestration_step s SET {columns} FROM orchestration_task t WHERE t.id = s.task_id"
        " AND t.reference = %(order)s AND s.name = %(name)s AND s.direction = 'do'",
        order=reference, name=name,
    )  # fmt: skip


def waits(reference, after="1 day", name=NAME):
    plant(WAIT, order=reference, after=after, name=name)


def blamed(rows):
    return {(breach.invariant, breach.reference) for breach in violations(rows)}


@pytest.fixture
def delayed(rows):
    """The reference of an order whose shipment waits for its time, and nothing else goes on."""
    reference = rows.orders["waiting"]
    change(reference, TIMED)
    return reference


def test_step_that_waits_for_its_time_is_not_found(rows, delayed):
    waits(delayed)
    assert blamed(rows) == set()


def test_step_that_waits_for_its_time_without_a_row_is_found(rows, delayed):
    assert blamed(rows) == {(1, delayed)}


def test_step_whose_time_came_long_ago_is_found(rows, delayed):
    waits(delayed, after="-10 min")
    assert blamed(rows) == {(1, delayed)}


def test_row_of_a_step_that_has_begun_is_found(rows):
    reference = rows.orders["processed"]
    waits(reference)
    assert blamed(rows) == {(12, reference)}


@pytest.mark.parametrize("of_what_comes_before", [True, False])
@pytest.mark.parametrize(("seconds", "blames"), [(864_000, True), (0, False)])
def test_step_that_was_sent_before_its_time_is_found(rows, of_what_comes_before, seconds, blames):
    reference = rows.orders["processed"]
    first = Step.objects.filter(task__reference=reference, direction="do").order_by("id")[0].name
    name = NAME if of_what_comes_before else first
    change(reference, f"""flow = '{{"not_before": {seconds}}}'""", name=name)
    assert blamed(rows) == ({(6, reference)} if blames else set())


@pytest.mark.parametrize(
    ("at", "blames"),
    [
        ("2999-01-01T00:00:00+00:00", True),
        ("2999-01-01T00:00:00.123456+02:00", True),
        ("2020-01-01T00:00:00+00:00", False),
        ("2999-W01-1T00:00:00+00:00", False),  # valid, and not what Postgres reads
    ],
)
def test_step_that_was_sent_before_a_time_of_the_calendar_is_found(rows, at, blames):
    reference = rows.orders["processed"]
    change(reference, f"""flow = '{{"not_before": "{at}"}}'""")
    assert blamed(rows) == ({(6, reference)} if blames else set())


def test_template_of_a_time_is_not_a_violation(rows):
    reference = rows.orders["processed"]
    change(reference, """flow = '{"not_before": {"$from": ["", "at"]}}'""")
    assert Task.objects.filter(reference=reference).exists()
    assert blamed(rows) == set()
