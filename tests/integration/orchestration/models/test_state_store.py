"""The state store by the pattern's own names: OrderID, LockedBy, CompleteBy, ProcessState, FailureCount."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration.models import StateStore, Step
from orchestration.models.statestore import ProcessState
from orchestration.states import StepState
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import done_by_hand
from orchestration.transitions.undo import undo
from tests.support.engine import claimed, force, new_task, reply_to
from tests.support.operators import browser, fail, person
from tests.support.page import page
from tests.support.plans import analyse, explained

pytestmark = pytest.mark.django_db
LIST = "/admin/orchestration/statestore/"


def records(task) -> list[tuple]:
    """Return a task's records by the names, as any client of the database reads them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT order_id, step, locked_by, complete_by IS NOT NULL, process_state, failure_count"
            " FROM orchestration_statestore WHERE task_id = %s AND direction = 'do' ORDER BY id",
            [task.id],
        )
        return cursor.fetchall()


def words_of(task) -> dict[str, str]:
    rows = StateStore.objects.filter(task_id=task.id)
    return {f"{row.step} {row.direction}": row.process_state for row in rows}


class TestView:
    def test_record_follows_its_step(self):
        task = new_task("order-7")
        fresh = ("order-7", "hello", None, False, "Pending", 0)
        waiting = ("order-7", "again", None, False, "Pending", 0)
        assert records(task) == [fresh, waiting]
        requests = claimed("scheduler-7")
        assert records(task) == [
            ("order-7", "hello", "scheduler-7", True, "Processing", 0), waiting,
        ]  # fmt: skip
        fail(requests)  # the supervisor has counted it
        assert records(task) == [("order-7", "hello", None, False, "Pending", 1), waiting]
        force("UPDATE orchestration_step SET run_after = NULL WHERE task_id = %s", [task.id])
        (request,) = claimed("scheduler-8")
        record([reply_to(request)])
        assert records(task) == [
            ("order-7", "hello", None, False, "Processed", 1),
            ("order-7", "again", None, False, "Pending", 0),
        ]
        (request,) = claimed("scheduler-8")
        record([reply_to(request, "rejected")])
        assert records(task)[1] == ("order-7", "again", None, False, "Error", 0)
        record_ = StateStore.objects.get(task_id=task.id, step="again")
        assert (record_.workflow, record_.agent, record_.attempt) == ("greet", "greeter", 1)

    def test_step_done_by_hand_or_cancelled_counts_as_processed(self):
        task = new_task()
        (request,) = claimed()
        record([reply_to(request, "rejected")])
        done_by_hand(request.step, attempt=1, actor="ann", reason="called", result={"id": "g"})
        undo(task.id, actor="ann", reason="not wanted")
        by_step = dict(
            StateStore.objects.filter(task_id=task.id, direction="do").values_list("step", "state")
        )
        assert by_step == {"hello": "processed", "again": "cancelled"}
        assert words_of(task)["hello do"] == words_of(task)["again do"] == "Processed"
        assert "hello undo" in words_of(task)


@pytest.fixture
def _some_of_each():
    """Have a step in each state, and undo steps."""
    new_task("order-new")
    for number, state in enumerate(("skipped", "awaiting")):
        again = Step.objects.filter(task=new_task(f"order-{number}"), name="again")
        again.update(process_state=state)
    for name, outcome in (
        ("order-error", "rejected"),
        ("order-hand", "rejected"),
        ("other", "done"),
    ):
        task = new_task(name)
        (request,) = [request_ for request_ in claimed() if request_.task == task.id] or claimed()
        record([reply_to(request, outcome)])
        if name == "order-hand":
            done_by_hand(request.step, attempt=1, actor="ann", reason="called", result={"id": "g"})
            undo(task.id, actor="ann", reason="not wanted")
    assert set(StateStore.objects.values_list("state", flat=True)) == set(StepState)


@pytest.fixture
def client():
    return browser(person("ada", "view_statestore", is_staff=True))


def listed(client, **query) -> set[tuple[str, str]]:
    """Return the records that the admin lists: OrderID and step."""
    answer = client.get(LIST, query)
    assert answer.status_code == 200
    return {(row.order_id, row.step) for row in answer.context["cl"].result_list}


@pytest.mark.usefixtures("_some_of_each")
class TestAdmin:
    def test_filter_lists_the_records_in_each_state(self, client):
        total = 0
        for word in ProcessState.values:
            answer = client.get(LIST, {"process_state": word})
            rows = answer.context["cl"].result_list
            assert {row.process_state for row in rows} == {word}
            assert len(rows) == StateStore.objects.filter(process_state=word).count()
            total += len(rows)
        assert total == StateStore.objects.count()

    def test_records_are_searched_by_order_id(self, client):
        assert {order for order, _ in listed(client, q="order-e")} == {"order-error"}
        assert listed(client, q="rder") == set()

    def test_records_are_filtered_by_agent_and_workflow(self, client):
        everything = listed(client)
        assert listed(client, agent="greeter", workflow="greet") == everything
        assert listed(client, agent="payment") == set()
        assert listed(client, workflow="process_order") == set()

    def test_record_names_its_order_and_links_to_its_task(self, client):
        row = StateStore.objects.get(order_id="order-error", step="hello")
        table = page(client.get(LIST, {"q": "order-error"})).only("#result_list")
        task = reverse("ops:task", args=[row.task_id])
        assert task in {link["href"] for link in table.all("a[href]")}
        names = {"OrderID", "LockedBy", "CompleteBy", "ProcessState", "FailureCount"}
        assert names <= set(table.texts("th"))
        shown = page(client.get(reverse("admin:orchestration_statestore_change", args=[row.id])))
        assert shown.only(".field-process_state").only(".readonly").text == "Error"

    def test_record_is_read_only(self, client):
        root = browser(person("root", is_staff=True, is_superuser=True))
        row = StateStore.objects.first()
        change = reverse("admin:orchestration_statestore_change", args=[row.id])
        assert root.post(change, {"failure_count": 7}).status_code == 403
        assert root.get(reverse("admin:orchestration_statestore_add")).status_code == 403

    def test_record_requires_the_permission_to_view(self):
        assert browser(person("bob", is_staff=True)).get(LIST).status_code == 403

    def test_few_of_many_come_from_an_index_and_many_are_not_counted(self, client):
        many()
        for query, index in (
            ({"q": "order-e"}, "task_by_reference"),
            ({"process_state": "Error"}, "step_errors|step_in_error|step_of_incident"),
            ({"process_state": "Processing"}, "step_expiry|step_in_flight"),
            ({"process_state": "Pending"}, "task_by_state"),
        ):
            statements = asked(client, **query)
            assert len(statements) == 2  # how many, and which
            for statement in statements:
                plan = explained(statement.replace("%", "%%"), [], off=(), measured=True)
                used = {node["Index Name"] for node in plan if "Index Name" in node}
                assert used & set(index.split("|")), (query, used)
                assert "Seq Scan" not in {node["Node Type"] for node in plan}
        for query in ({}, {"process_state": "Processed"}, {"agent": "greeter"}):
            limits = [re.findall(r"LIMIT (\d+)", statement) for statement in asked(client, **query)]
            assert limits == [["10000"], ["50"]], query


def asked(client, **query) -> list[str]:
    """Return the statements by which the admin lists records."""
    with CaptureQueriesContext(connection) as seen:
        listed(client, **query)
    return [entry["sql"] for entry in seen if "orchestration_statestore" in entry["sql"]]


def many() -> None:
    """Have 5,000 tasks more, copies of one that is processed; and something is awaited by each step."""
    task = run_to_end_of(new_task())
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO orchestration_task SELECT (jsonb_populate_record(t, jsonb_build_object(
                'id', gen_random_uuid(), 'reference', 'many-' || n))).*
            FROM orchestration_task t, generate_series(1, 5000) AS n WHERE t.id = %(task)s;
            INSERT INTO orchestration_step SELECT (jsonb_populate_record(s, jsonb_build_object(
                'id', s.id + 1000 * row_number() OVER (), 'task_id', t.id))).*
            FROM orchestration_step s, orchestration_task t
            WHERE s.task_id = %(task)s AND t.reference LIKE 'many-%%';
            INSERT INTO orchestration_wait
                (step_id, task_id, agent, external_id, person, signal, looks, asked_last, reminded)
            SELECT id, task_id, '', '', '', '', 0, false, 0 FROM orchestration_step;
            """,
            {"task": task.id},
        )
    analyse("orchestration_task", "orchestration_step", "orchestration_wait")


def run_to_end_of(task):
    while requests := [request for request in claimed() if request.task == task.id]:
        record([reply_to(request) for request in requests])
    return task
