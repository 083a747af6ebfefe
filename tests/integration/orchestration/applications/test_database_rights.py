"""An application whose database role may read none of the engine's tables posts all the same (P22)."""

from contextlib import contextmanager
from importlib import import_module
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connection, transaction

from orchestration import api, submission, task_requests
from orchestration.applications import database_rights
from orchestration.models import Submission, Task, TaskRequest

pytestmark = pytest.mark.django_db
ROLE = "some_application"


@pytest.fixture
def role():
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {ROLE}")  # with the test's transaction it is gone
    call_command("grant_application", ROLE)
    call_command("grant_application", ROLE)  # again changes nothing


@contextmanager
def acting():
    """Run as the application's role, even if it fails."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL ROLE {ROLE}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET ROLE")


def test_role_without_tables_posts_submissions_and_requests(role):
    number = uuid4()
    with acting():
        api.submit("greet", reference="7", data={"name": "Ada"}, fairness_key="a")
        api.submit("greet", reference="8", data={"name": "Bob"}, fairness_key="a")
        api.request_undo("greet", "7", actor="ada", reason="no", id=number)
        api.request_undo("greet", "7", actor="ada", reason="no", id=number)
    first, second = Submission.objects.order_by("id")
    assert first.turn < second.turn  # it is counted, too
    assert submission.take(10) == 2
    assert task_requests.take(10) == 1
    assert Task.objects.get(reference="7").state == "undone"
    assert TaskRequest.objects.get().request == number


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
            cursor.execute(f"SET LOCAL ROLE {ROLE}")
        try:
            yield
        finally:
            transaction.savepoint_rollback(point)
            with connection.cursor() as cursor:
                cursor.execute("RESET ROLE")


def test_role_without_the_grant_may_not_post():
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {ROLE}")
    with acting_apart(), pytest.raises(ProgrammingError, match="permission denied"):
        api.submit("greet", reference="7", data={"name": "Ada"})


def test_migration_lets_roles_submit_that_could_post():
    migration = import_module("orchestration.migrations.0007_submit")
    may_call = "SELECT proname FROM pg_proc WHERE has_function_privilege(%s, oid, 'EXECUTE')"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {ROLE}")
        cursor.execute(f"GRANT EXECUTE ON FUNCTION orchestration_post TO {ROLE}")
        cursor.execute(migration.GRANT)
        cursor.execute(f"{may_call} AND proname LIKE 'orchestration%%' ORDER BY 1", [ROLE])
        assert {"orchestration_post", "orchestration_submit"} <= {name for (name,) in cursor}


def test_role_that_inherits_rights_is_reported():
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {ROLE}")
        cursor.execute("GRANT SELECT ON orchestration_task TO PUBLIC")
    with pytest.raises(CommandError, match="still has rights on orchestration_task"):
        call_command("grant_application", ROLE)
