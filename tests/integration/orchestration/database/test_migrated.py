"""No process starts on a database that lacks its migrations; `migrate` waits for no lock for long."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from orchestration.database import migrated
from orchestration.management.commands import migrate

FORGET = "DELETE FROM django_migrations WHERE app = 'orchestration' AND name = '0012_submit_planned_once'"


@pytest.mark.django_db
@pytest.mark.parametrize("command", [["work", "scheduler"], ["supervisor", "--once"]])
def test_process_of_a_newer_release_waits_for_its_migrations(command):
    migrated.require()
    with connection.cursor() as cursor:
        cursor.execute(FORGET)
    with pytest.raises(
        CommandError, match=r"orchestration\.0012_submit_planned_once.*manage.py migrate"
    ):
        call_command(*command)


@pytest.mark.django_db
def test_process_of_an_older_release_works_on_newer_tables():
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_migrations VALUES (4711, 'orchestration', '9999_later', now())"
        )
    migrated.require()


@pytest.mark.django_db
def test_files_that_django_takes_for_no_migrations_are_not_needed(settings, tmp_path, monkeypatch):
    for name in ("__init__", "_helpers", "~copy", "sql/__init__"):
        file = tmp_path / "odd_migrations" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.syspath_prepend(tmp_path)
    settings.MIGRATION_MODULES = {"greeting": "odd_migrations"}
    migrated.require("greeting")


@pytest.mark.django_db
def test_application_without_its_migrations_needs_none(settings):
    settings.MIGRATION_MODULES = {"sessions": None}
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions'")
    migrated.require()


@pytest.mark.django_db
def test_empty_database_is_named():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE django_migrations RENAME TO elsewhere")
    with pytest.raises(CommandError, match="0001_initial"):
        migrated.require("orchestration")


@pytest.fixture
def foreign(settings, monkeypatch):
    """A session that reads a table which the next migration needs for itself, until it is rolled back."""
    settings.MIGRATION_MODULES = {"greeting": "tests.support.locking_migration"}
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", "50ms")
    other = connection.copy()
    other.set_autocommit(False)
    with other.cursor() as cursor:
        cursor.execute("SELECT FROM orchestration_step")
    yield other
    other.close()
    call_command("migrate", "greeting", "zero", verbosity=0)


@pytest.mark.django_db(transaction=True)
def test_migration_gives_up_on_a_locked_table_and_names_who_may_hold_it(foreign, monkeypatch):
    waits = []
    monkeypatch.setattr(migrate.time, "sleep", waits.append)
    errors = StringIO()
    with pytest.raises(
        CommandError, match=r"oldest transaction: pid \d+, postgres.*run this again"
    ):
        call_command("migrate", "greeting", verbosity=0, stderr=errors)
    assert waits == list(migrate.WAITS)
    assert errors.getvalue().count("A table is locked") == len(waits)


@pytest.mark.django_db(transaction=True)
def test_migration_goes_on_once_the_table_is_free(foreign, monkeypatch):
    monkeypatch.setattr(migrate.time, "sleep", lambda _: foreign.rollback())
    call_command("migrate", "greeting", verbosity=0, stderr=StringIO())
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM django_migrations WHERE app = 'greeting'")
        assert cursor.fetchone() == (1,)
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("8s",)
