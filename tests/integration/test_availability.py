"""What an error says of the database, judged on real errors; and that who met with one goes on."""

import threading

import psycopg2
import pytest
from django.db import Error, connection, transaction
from django.db.transaction import TransactionManagementError

from drill.waiting import wait_for
from orchestration import alerts, conf, presence
from orchestration.lookout import Lookout
from orchestration.models import Alert, Lease, Worker
from orchestration.models.alert import Severity
from orchestration.sql import Availability, availability, is_busy, is_twin, is_unavailable
from tests.database import another, kill, locked, read_only, reads_fail
from tests.operators import led

pytestmark = pytest.mark.django_db(transaction=True)
AWAY, READ_ONLY, AVAILABLE = Availability


def error_of(statement, *parameters):
    with pytest.raises(Error) as raised, connection.cursor() as cursor:
        cursor.execute(statement, parameters)
    connection.close()
    return raised.value


def test_a_backend_that_was_killed_is_away():
    connection.ensure_connection()
    kill()
    assert availability(error_of("SELECT 1")) is AWAY


def test_a_connection_that_was_closed_is_away():
    connection.ensure_connection()
    connection.connection.close()
    assert availability(error_of("SELECT 1")) is AWAY


def test_a_server_that_cannot_be_reached_is_away(monkeypatch):
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "HOST", "/nowhere")
    assert availability(error_of("SELECT 1")) is AWAY


def test_a_server_that_takes_no_writes_is_read_only():
    with read_only():
        error = error_of("UPDATE orchestration_lease SET did = ''")
        assert availability(error) is READ_ONLY
        assert is_unavailable(error)


def test_idling_in_a_transaction_for_too_long_is_away():
    with connection.cursor() as cursor:
        cursor.execute("SET idle_in_transaction_session_timeout = 1")
        cursor.execute("BEGIN")
    lives = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
    with another() as other:
        process = [connection.connection.info.backend_pid]
        wait_for(lambda: other.execute(lives, process) or other.fetchone() == (0,), "it has ended")
    assert availability(error_of("SELECT 1")) is AWAY


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 / 0",
        "SELECT nothing",
        "SELECT 'x'::int",
        "SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(5)",
        "INSERT INTO orchestration_hold (id) VALUES (1)",
    ],
)
def test_a_statement_that_fails_says_nothing_of_the_database(statement):
    error = error_of(statement)
    assert availability(error) is AVAILABLE
    assert not is_busy(error)


def test_a_lock_that_is_not_to_be_had_means_that_others_have_it():
    with locked("orchestration_lease"):
        error = error_of("SELECT 1 FROM orchestration_lease")
    assert availability(error) is AVAILABLE
    assert is_busy(error)


def test_a_twin_is_told_from_other_violations():
    led()
    assert is_twin(error_of("INSERT INTO orchestration_lease SELECT * FROM orchestration_lease"))
    assert not is_twin(error_of("INSERT INTO orchestration_lease (name) VALUES (NULL)"))


def test_mistakes_of_our_own_say_nothing_of_the_database():
    assert availability(ValueError("no")) is AVAILABLE
    assert availability(psycopg2.ProgrammingError("can't adapt type")) is AVAILABLE


def test_what_an_error_was_raised_from_counts():
    connection.ensure_connection()
    kill()
    wrapped = RuntimeError("an application's own")
    wrapped.__cause__ = error_of("SELECT 1")
    assert availability(wrapped) is AWAY


def test_what_follows_in_a_broken_transaction_has_the_same_cause():
    write = transaction.atomic(savepoint=False)(Lease.objects.update)
    with read_only(), transaction.atomic():
        with pytest.raises(Error):
            write(did="")
        with pytest.raises(TransactionManagementError) as raised:
            Lease.objects.exists()
    assert availability(raised.value) is READ_ONLY


def test_a_process_reports_again_after_its_connection_was_closed():
    connection.ensure_connection()
    connection.connection.close()
    assert not presence._try_to_report("greeter", stepped_back=presence.never)
    assert presence._try_to_report("greeter", stepped_back=presence.never)
    assert Worker.objects.filter(queue="greeter").exists()


def test_the_lookout_goes_on_whatever_it_met_with(monkeypatch, caplog):
    monkeypatch.setattr(conf, "LOOKOUT", 0.02)
    led()
    alerts.raise_alert(
        "system/supervisor/no_leader", severity=Severity.CRITICAL, title="No supervisor leads"
    )
    with reads_fail("orchestration_lease", "XX000", times=1), Lookout():
        wait_for(lambda: Alert.objects.get().closed_at, "the lookout sees that one leads")
    assert "the lookout failed" in caplog.text
    assert "lookout" not in {thread.name for thread in threading.enumerate()}
