"""What Python cannot read is refused at the doors; a row that has it all the same stops no other."""

import json
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from orchestration import api, registry, submission, task_requests
from orchestration.agents.payload_schemas import Invalid
from orchestration.applications import status_messages
from orchestration.database import sql
from orchestration.dead_letters import actions
from orchestration.dead_letters.actions import DeadLetterFilter
from orchestration.models import DeadLetter, StatusMessage, Step, Submission, Task, TaskRequest
from orchestration.models.inbox import StatusKind
from orchestration.payloads.limits import DEEPEST, MAX_KEPT
from orchestration.workflows.workflow import Refused
from tests.support.engine import in_error, new_task, run_to_end
from tests.support.operators import browser, person

pytestmark = pytest.mark.django_db
READ_BY_PYTHON, READ_BY_NOTHING = 500, 3000  # levels
CONSTRAINTS = (
    ("submission", "data"),
    ("taskrequest", "amendment"),
    ("taskrequest", "note"),
)
AMENDED = {"request": {"to": "Eve"}, "data": {}, "wait": 0.0, "patience": 0.0}


def nested(levels):
    """Return the text of JSON of a number of levels: Python could not write it."""
    return '{"name":' * levels + "1" + "}" * levels


@pytest.fixture
def no_door():
    """Have tables take any JSON, as they did before they had constraints."""
    with connection.cursor() as cursor:
        for table, column in CONSTRAINTS:
            name = f"{table}_{column}_can_be_read"
            cursor.execute(f"ALTER TABLE orchestration_{table} DROP CONSTRAINT {name}")


@pytest.fixture
def operator():
    return browser(person("ann", "operate", "requeue", "see_personal", "undo"))


def deepen(row, column, levels):
    """Write JSON of a number of levels into a row."""
    table = row._meta.db_table
    sql.run(f"UPDATE {table} SET {column} = %(deep)s::jsonb WHERE id = %(id)s",
            {"deep": nested(levels), "id": str(row.pk)})  # fmt: skip


def post(reference, workflow="greet"):
    return Submission.objects.create(workflow=workflow, reference=reference, data={"name": "Ada"})


def ask(task, **more):
    return TaskRequest.objects.create(
        request=uuid4(), workflow="greet", reference=task.reference, actor="customer",
        because="mended", **more,
    )  # fmt: skip


def test_submit_takes_what_messages_take_and_no_more():
    fits = json.loads(nested(DEEPEST))
    api.submit("greet", reference="fits", data=fits)
    for deep in (json.loads(nested(DEEPEST + 1)), json.loads(nested(READ_BY_PYTHON))):
        with pytest.raises(Invalid, match="nested deeper than 100 levels"):
            api.submit("greet", reference="deep", data=deep)
    with pytest.raises(Invalid, match=r"at most 4,194,304 are kept"):
        api.submit("greet", reference="long", data={"name": "x" * MAX_KEPT})
    assert [row.reference for row in Submission.objects.all()] == ["fits"]


def test_request_takes_what_messages_take_and_no_more():
    step = in_error(new_task())
    deep = json.loads(nested(DEEPEST + 1))
    about = ("greet", step.task.reference, step.name)
    because = {"attempt": 1, "actor": "me", "reason": "mended", "id": uuid4()}
    for more in ({"amendment": api.Amendment(request=deep)}, {"note": deep}):
        with pytest.raises(Invalid, match="nested deeper"):
            api.request_resubmit(*about, **because, **more)
    assert not TaskRequest.objects.exists()


@pytest.mark.parametrize("levels", [DEEPEST + 2, READ_BY_PYTHON, READ_BY_NOTHING])
def test_functions_of_the_database_take_no_more(levels):
    submitting = (
        "SELECT orchestration_submit(ARRAY['greet'], ARRAY['1'], ARRAY[%(deep)s::jsonb], ARRAY[''],"
        " ARRAY[''], ARRAY[0]::smallint[], ARRAY[''])"
    )
    asking = "SELECT orchestration_request(%(id)s::uuid, 'greet', '1', 'undo', '', 0, {}, 'me', 'why', '')"
    calls = (
        submitting,
        asking.format("%(deep)s::jsonb, NULL"),
        asking.format("'{}', %(deep)s::jsonb"),
    )
    for call in calls:
        with pytest.raises(IntegrityError, match="can_be_read"), transaction.atomic():
            sql.run(call, {"deep": nested(levels), "id": str(uuid4())})


@pytest.mark.parametrize("levels", [READ_BY_PYTHON, READ_BY_NOTHING])
def test_unreadable_submission_is_set_aside_beside_others(no_door, operator, levels):
    bad = post("bad")
    deepen(bad, "data", levels)
    for number in range(5):
        post(f"good-{number}")
    assert submission.take(100) == 6
    assert Task.objects.count() == 5
    bad = Submission.objects.defer("data").get()
    assert bad.refused_at
    assert "nested deeper than 100 levels" in bad.reason
    page = operator.get("/ops/dead-letters/")
    assert page.status_code == 200
    assert b"bad" in page.content
    narrowing = DeadLetterFilter(kind="submission", id=bad.id)
    assert actions.retry(narrowing, by="ann") == 1
    assert submission.take(100) == 1
    assert actions.close(narrowing, by="ann", reason="no one can read it") == 1
    assert operator.get("/ops/dead-letters/?state=closed").status_code == 200


def test_unreadable_submission_of_a_known_reference_is_set_aside(no_door):
    post("1")
    assert submission.take(10) == 1
    deepen(post("1"), "data", READ_BY_NOTHING)
    assert submission.take(10) == 1
    assert Submission.objects.defer("data").get().refused_at


@pytest.mark.parametrize("column", ["amendment", "note"])
def test_unreadable_request_is_dealt_with_beside_others(no_door, operator, column):
    steps = [in_error(new_task()) for _ in range(3)]
    asked = [
        ask(step.task, what="resubmit", step=step.name, attempt=step.attempt, amendment=AMENDED)
        for step in steps
    ]
    deepen(asked[0], column, READ_BY_NOTHING)
    assert task_requests.take(10).done == 3
    assert {Step.objects.get(id=step.id).process_state for step in steps[1:]} == {"pending"}
    bad = TaskRequest.objects.defer(column).get(id=asked[0].id)
    if column == "amendment":
        assert bad.refusal == "INVALID"
    assert operator.get("/ops/dead-letters/").status_code == 200


def test_unreadable_request_that_fails_is_listed_and_closed(no_door, operator):
    bad = ask(new_task(), what="undo")
    TaskRequest.objects.filter(id=bad.id).update(workflow="gone")
    deepen(bad, "note", READ_BY_NOTHING)
    assert task_requests.take(10).done == 1
    assert operator.get("/ops/dead-letters/").status_code == 200
    narrowing = DeadLetterFilter(kind="request", id=bad.id)
    assert actions.close(narrowing, by="ann", reason="no one can read it") == 1


def test_unreadable_status_message_stops_no_other(operator):
    messages = [
        StatusMessage.objects.create(
            reply_to="shop",
            workflow="greet",
            reference=f"{number}",
            number=0,
            kind=StatusKind.CLOSED,
        )
        for number in range(3)
    ]
    deepen(messages[0], "detail", READ_BY_NOTHING)
    status_messages.deliver("shop", 10)
    assert not StatusMessage.objects.filter(id__in=[sent.id for sent in messages[1:]]).exists()
    StatusMessage.objects.filter(id=messages[0].id).update(reason="it failed")
    assert operator.get("/ops/dead-letters/").status_code == 200


def test_number_that_python_cannot_read_stops_no_other(operator, monkeypatch):
    received = []

    def receive(messages):
        if unreadable := [message for message in messages if not isinstance(message.detail, dict)]:
            raise Refused(f"it cannot be read: {unreadable[0].detail}")
        received.extend(message.reference for message in messages)

    monkeypatch.setitem(registry.receivers, "shop", receive)
    for reference in ("bad", "good"):
        post(reference)
        StatusMessage.objects.create(
            reply_to="shop", workflow="greet", reference=reference, number=0, kind=StatusKind.CLOSED
        )
    for table, column in (("submission", "data"), ("statusmessage", "detail")):
        sql.run(f"UPDATE orchestration_{table} SET {column} = %(long)s::jsonb WHERE reference = 'bad'",
                {"long": f'{{"name": {"9" * 5000}}}'})  # fmt: skip
    assert submission.take(10) == 2
    assert Task.objects.get().reference == "good"
    assert "thousands of digits" in Submission.objects.get(refused_at__isnull=False).reason
    assert status_messages.deliver("shop", 10) == 2
    assert received == ["good"]
    assert "thousands of digits" in StatusMessage.objects.get(refused_at__isnull=False).reason
    assert operator.get("/ops/dead-letters/").status_code == 200


def test_unreadable_inbox_message_is_listed(operator):
    DeadLetter.objects.create(
        queue="scheduler", body=nested(READ_BY_NOTHING), reason="malformed", tries=0
    )
    assert operator.get("/ops/dead-letters/").status_code == 200
    assert actions.close(DeadLetterFilter(kind="inbox"), by="ann", reason="malformed") == 1


@pytest.mark.parametrize("column", ["request", "result", "loaded", "undo_request"])
def test_pages_of_a_task_with_an_unreadable_step_can_be_read(operator, column):
    task = new_task()
    run_to_end(task)
    deepen(Step.objects.filter(task=task).first(), column, READ_BY_NOTHING)
    for address in (f"/ops/tasks/{task.id}/", "/ops/tasks/", "/ops/"):
        assert operator.get(address).status_code == 200


def test_pages_of_a_task_with_unreadable_input_can_be_read(operator):
    task = new_task()
    deepen(task, "data", READ_BY_NOTHING)
    for address in (f"/ops/tasks/{task.id}/", "/ops/tasks/", "/ops/"):
        assert operator.get(address).status_code == 200
