"""An application whose database role may read none of the engine's tables posts all the same (P22)."""

from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connection, transaction

from orchestration import api, registry, submission, task_requests
from orchestration.applications import database_rights, requests, submissions
from orchestration.models import ApplicationRole, Event, Submission, Task, TaskRequest
from tests.support.engine import new_task

pytestmark = pytest.mark.django_db
ROLE = "some_application"
APPLICATION = "greetings"


@pytest.fixture
def role(monkeypatch):
    """Make a role of the application that keeps the workflow "greet"."""
    owned = replace(registry.workflows["greet"], owner_application=APPLICATION)
    monkeypatch.setitem(registry.workflows, "greet", owned)
    monkeypatch.setitem(registry.receivers, APPLICATION, list)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {ROLE}")  # with the test's transaction it is gone
    call_command("grant_application", ROLE, APPLICATION)
    call_command("grant_application", ROLE, APPLICATION)  # again changes nothing


@contextmanager
def acting():
    """Run as the application's role, as if it had logged in, even if it fails."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL SESSION AUTHORIZATION {ROLE}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET SESSION AUTHORIZATION")


def test_role_without_tables_posts_submissions_and_requests(role):
    number = uuid4()
    with acting():
        api.submit("greet", reference="7", data={"name": "Ada"}, fairness_key="a")
        api.submit("greet", reference="8", data={"name": "Bob"}, fairness_key="a")
        api.request_undo("greet", "7", actor="lead", reason="no", id=number)
        api.request_undo("greet", "7", actor="lead", reason="no", id=number)
    first, second = Submission.objects.order_by("id")
    assert first.turn < second.turn  # it is counted, too
    assert submission.take(10) == 2
    assert task_requests.take(10).done == 1
    assert Task.objects.get(reference="7").state == "undone"
    assert TaskRequest.objects.get().request == number
    # the history names the application, and no person that it may have named
    by = set(Event.objects.filter(reason="no").values_list("actor", flat=True))
    assert by == {f"application {APPLICATION}"}


def test_role_reports_by_no_id_of_a_service(role):
    known = {"result": {"text": "x"}, "actor": "x", "id": uuid4()}
    with (
        acting_apart(),
        pytest.raises(ProgrammingError, match="permission denied"),
        transaction.atomic(),
    ):
        api.complete(by=("greeter", "pi_1"), **known)
    assert not TaskRequest.objects.exists()


def test_role_can_read_and_write_no_relation_of_the_engine(role):
    with connection.cursor() as cursor:
        cursor.execute(database_rights.RELATIONS, {})
        names = [name for (name,) in cursor.fetchall()]
    assert {"orchestration_task", "orchestration_step", "orchestration_submission"} < set(names)
    reads = [f"SELECT count(*) FROM {name}" for name in names]
    for statement in [*reads, "DELETE FROM orchestration_task", "TRUNCATE orchestration_event"]:
        with (
            acting_apart(),
            pytest.raises(ProgrammingError, match="permission denied"),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)


@contextmanager
def acting_apart():
    """Run as the role in a savepoint that is rolled back, as an error ends it."""
    with transaction.atomic():
        point = transaction.savepoint()
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL SESSION AUTHORIZATION {ROLE}")
        try:
            yield
        finally:
            transaction.savepoint_rollback(point)


def ask(**changed):
    """Call the function for requests as a program does that is not this one."""
    values = {
        "request": str(uuid4()), "workflow": "greet", "reference": "7", "what": "undo", "step": "",
        "attempt": 0, "amendment": "{}", "note": None, "actor": "lead", "because": "no", "reply_to": "",
    } | changed  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(requests.POST, values)


def post(**changed):
    """Call the function for submissions as such a program does."""
    values = {
        "workflow": "greet", "reference": "7", "data": '{"name": "Ada"}', "reply_to": APPLICATION,
        "owner_application": APPLICATION, "priority": 0, "fairness_key": "a",
        "about_workflow": None, "about_reference": None,
    } | changed  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(submissions.POST, {name: [value] for name, value in values.items()})


@pytest.mark.parametrize(
    ("call", "changed"),
    [
        (ask, {"workflow": "process_order"}),
        (ask, {"reply_to": "shop"}),
        (post, {"workflow": "process_order"}),
        (post, {"workflow": "canary"}),
        (post, {"reply_to": "shop"}),
        (post, {"owner_application": "shop"}),
    ],
)
def test_role_acts_for_no_other_application(role, call, changed):
    new_task("7")
    with acting():
        call()
    with acting_apart(), pytest.raises(ProgrammingError, match="application greetings may not"):
        call(**changed)


def test_owner_of_the_tables_acts_for_every_application(role):
    ask(workflow="process_order", actor="ada")
    assert TaskRequest.objects.get().actor == "ada"


def test_role_of_no_application_is_refused(role):
    ApplicationRole.objects.all().delete()
    for call in (ask, post):
        with acting_apart(), pytest.raises(ProgrammingError, match="is of no application"):
            call()


def test_role_from_before_applications_were_named_acts_as_then(role):
    ApplicationRole.objects.update(application="", workflows=[])
    with acting():
        ask(actor="ada")
    assert TaskRequest.objects.get().actor == "ada"


def test_workflow_that_no_application_keeps_is_granted_by_its_name(role, monkeypatch):
    loose = replace(registry.workflows["greet"], name="loose", owner_application="")
    monkeypatch.setitem(registry.workflows, "loose", loose)
    call_command("grant_application", ROLE, APPLICATION, "--workflow", "loose")
    call_command("grant_application", ROLE, APPLICATION)
    with acting():
        post(workflow="loose", owner_application="")
    with pytest.raises(CommandError, match="process_order is kept by shop"):
        call_command("grant_application", ROLE, APPLICATION, "--workflow", "process_order")
    with pytest.raises(CommandError, match="no workflow 'lose'"):
        call_command("grant_application", ROLE, APPLICATION, "--workflow", "lose")


def test_application_that_keeps_no_workflow_is_not_granted_anything(role):
    with pytest.raises(CommandError, match="greeting keeps no workflow; greetings, shop do"):
        call_command("grant_application", ROLE, "greeting")


def test_only_application_need_not_be_named(role, monkeypatch):
    with pytest.raises(CommandError, match="name the application: greetings, shop"):
        call_command("grant_application", ROLE)
    for name, workflow in list(registry.workflows.items()):
        if workflow.owner_application == "shop":
            monkeypatch.delitem(registry.workflows, name)
    call_command("grant_application", ROLE)
    assert ApplicationRole.objects.get().application == APPLICATION


def test_role_without_the_grant_may_not_post():
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {ROLE}")
    with acting_apart(), pytest.raises(ProgrammingError, match="permission denied"):
        api.submit("greet", reference="7", data={"name": "Ada"})


def test_migration_keeps_roles_that_could_post():
    migration = import_module("orchestration.migrations.0026_application_roles")
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {ROLE}")
        cursor.execute(f"GRANT EXECUTE ON FUNCTION orchestration_submit TO {ROLE}")
        cursor.execute(migration.KEEP)
    assert ApplicationRole.objects.get(role=ROLE).application == ""


def test_role_that_inherits_rights_is_reported():
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {ROLE}")
        cursor.execute("GRANT SELECT ON orchestration_task TO PUBLIC")
    with pytest.raises(CommandError, match="still has rights on orchestration_task"):
        call_command("grant_application", ROLE)
