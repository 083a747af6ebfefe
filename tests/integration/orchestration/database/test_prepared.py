"""Statements that each connection plans once."""

from contextlib import closing, suppress
from itertools import product

import pytest
from django.db import Error, close_old_connections, connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from psycopg2.sql import SQL

from orchestration.database import prepared
from orchestration.transitions.locked_task import STEPS
from tests.support.engine import new_task

COMPOSED = SQL("SHOW enable_sort")
COUNT = "SELECT reference, %(given)s::text FROM orchestration_task WHERE reference = ANY(%(names)s)"


def count(*names, text="x"):
    return prepared.run(COUNT, {"names": list(names), "given": text})


def prepared_here() -> set[str]:
    """Return the names of what the server has prepared for this connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM pg_prepared_statements")
        return {name for (name,) in cursor.fetchall()}


@pytest.mark.django_db
def test_statement_is_prepared_once_and_sent_in_one_round_trip():
    new_task(reference="r1")
    with CaptureQueriesContext(connection) as seen:
        assert count("r1", "r2") == count("r1") == [("r1", "x")]
    assert ["PREPARE" in query["sql"] for query in seen] == [True, False]
    assert prepared.statement(COUNT).name in prepared_here()


@pytest.mark.django_db
@pytest.mark.parametrize("text", ['"', "\\", "{}", "a,b", "NULL", "", "it's 100 %", "Größe\n文字"])
def test_texts_arrive_as_they_are(text):
    new_task(reference="r1")
    assert count("r1", text, text=text) == [("r1", text)]
    with connection.cursor() as cursor:
        for texts in ([text, None], [text], ["x", text, text]):
            cursor.execute("SELECT %s::text[]", [prepared.sql.as_array(texts)])
            assert cursor.fetchone() == (texts,)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("debug", [False, True])
def test_statements_of_a_connection_that_was_replaced_are_prepared_anew(monkeypatch, debug):
    monkeypatch.setitem(connection.settings_dict, "CONN_HEALTH_CHECKS", True)
    monkeypatch.setattr(connections["default"], "force_debug_cursor", debug)
    connection.close()
    assert count("r1") == []
    pid = connection.connection.info.backend_pid
    with closing(connection.copy()) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    close_old_connections()  # between two jobs of a worker
    assert count("r1") == []


@pytest.mark.django_db(transaction=True)
def test_what_the_server_has_forgotten_is_prepared_anew():
    count("r1")
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")  # as a pooler's reset does
    with pytest.raises(Error, match="does not exist"):
        count("r1")
    assert count("r1") == []


@pytest.mark.django_db(transaction=True)
def test_plan_whose_result_a_migration_changed_is_made_anew():
    statement = "SELECT * FROM orchestration_savedview WHERE name = %(name)s"
    assert prepared.run(statement, {"name": "x"}) == []
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE orchestration_savedview ADD COLUMN later int")
    try:
        with pytest.raises(Error, match="cached plan"):
            prepared.run(statement, {"name": "x"})
        assert prepared.run(statement, {"name": "x"}) == []
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE orchestration_savedview DROP COLUMN later")


@pytest.mark.django_db(transaction=True)
def test_new_connection_prepares_for_itself():
    count("r1")
    connection.close()
    assert count("r1") == []
    assert prepared_here() == {prepared.statement(COUNT).name}


@pytest.mark.django_db(transaction=True)
def test_behind_a_transaction_pooler_nothing_is_prepared(monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
    connection.close()
    task = new_task(reference="r1")
    assert count("r1") == [("r1", "x")]
    assert len(prepared.run(STEPS, {"tasks": [str(task.id)]})) == 2
    assert prepared_here() == set()


@pytest.mark.django_db(transaction=True)
def test_only_prepared_statements_are_limited_to_indexes():
    with transaction.atomic():
        for _ in range(2):
            assert planned_by_index() == "off"
            assert planned_as_usual("SHOW enable_sort") == "on"
    assert planned_by_index() == "off"
    assert planned_as_usual("SHOW enable_sort") == "on"


@pytest.mark.django_db(transaction=True)
def test_settings_are_right_after_a_rollback_to_a_savepoint():
    for inside, after in product([planned_by_index, planned_as_usual], repeat=2):
        with transaction.atomic():
            planned_by_index()
            with suppress(Rollback), transaction.atomic():
                inside()
                raise Rollback
            assert after() == ("off" if after is planned_by_index else "on")


@pytest.mark.django_db(transaction=True)
def test_settings_of_a_transaction_end_with_it():
    """One whose first statement is Django's has none of them, though the one before had."""
    for first, _ in product([planned_by_index, planned_as_usual], repeat=2):
        with transaction.atomic():
            first()
            assert planned_by_index() == "off"
    with suppress(Rollback), transaction.atomic():
        planned_by_index()
        raise Rollback
    with transaction.atomic():
        planned_as_usual()
        assert dict(in_force()) == SETTINGS


SETTINGS = {
    "plan_cache_mode": "force_generic_plan",
    **{f"enable_{way}": "off" for way in prepared.WAYS},
}


def in_force():
    """Return the settings that a prepared statement runs with."""
    ((*values, _),) = prepared.run(
        f"SELECT {', '.join(f'current_setting({name!r})' for name in SETTINGS)}, count(*)"
        " FROM orchestration_task",
        {},
    )
    return zip(SETTINGS, values, strict=True)


class Rollback(Exception):
    """Raised to roll back."""


def planned_by_index():
    """Return whether a prepared statement may sort."""
    statement = "SELECT current_setting('enable_sort'), count(*) FROM orchestration_task"
    ((setting, _),) = prepared.run(statement, {})
    return setting


def planned_as_usual(statement=COMPOSED):
    """Return whether a statement of Django's may sort; a composed one unless another is given."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]
