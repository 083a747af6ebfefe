"""The doctor and the database roles of applications."""

from dataclasses import replace

import pytest
from django.core.management import call_command
from django.db import connection

from orchestration import registry
from orchestration.applications import database_rights
from orchestration.assurance.doctor import roles
from orchestration.models import ApplicationRole

pytestmark = pytest.mark.django_db
ROLE, APPLICATION = "greeter_web", "greetings"


@pytest.fixture(autouse=True)
def _role(monkeypatch):
    """Make a role of the application that keeps the workflow "greet"."""
    owned = replace(registry.workflows["greet"], owner_application=APPLICATION)
    monkeypatch.setitem(registry.workflows, "greet", owned)
    execute(f"CREATE ROLE {ROLE}")
    call_command("grant_application", ROLE, APPLICATION)


def execute(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)


def findings():
    return {message.id for message in roles.subject.examine()}


def test_role_of_an_application_is_sound():
    assert findings() == set()


def test_role_without_an_application():
    """As a migration leaves those that were granted before roles had one."""
    ApplicationRole.objects.update(application="", workflows=[])
    [message] = roles.subject.examine()
    assert message.id == "roles.any_application"
    assert ROLE in message.msg
    assert f"grant_application {ROLE}" in message.hint


def test_role_that_may_call_and_is_of_no_application():
    ApplicationRole.objects.all().delete()
    assert findings() == {"roles.unnamed"}


def test_role_that_may_write_the_tables_needs_no_application():
    ApplicationRole.objects.all().delete()
    execute(f"GRANT INSERT ON orchestration_task TO {ROLE}")
    assert findings() == set()


def test_application_that_keeps_other_workflows_now():
    ApplicationRole.objects.update(workflows=["greet", "gone"])
    assert findings() == {"roles.workflows"}
    ApplicationRole.objects.update(workflows=[])
    assert findings() == {"roles.workflows"}


def test_application_that_is_gone():
    ApplicationRole.objects.update(application="gone")
    assert findings() == {"roles.applications"}


def test_role_that_is_gone():
    for function in database_rights.FUNCTIONS:
        execute(f"REVOKE ALL ON FUNCTION {function} FROM {ROLE}")
    execute(f"DROP OWNED BY {ROLE}")
    execute(f"DROP ROLE {ROLE}")
    assert findings() == {"roles.gone"}


def test_role_whose_rights_are_gone():
    execute(f"REVOKE ALL ON FUNCTION orchestration_request FROM {ROLE}")
    assert findings() == {"roles.rights"}
