"""What an error says of the database, judged on real errors; and that who met with one goes on."""

import threading

import psycopg2
import pytest
from django.db import Error, connection, transaction
from django.db.transaction import TransactionManagementError

from drill.waiting import wait_for
from orchestration import conf
from orchestration.alerting import alerts
from orchestration.cluster import heartbeat
from orchestration.database.sql import (
    Availability,
    availability,
    is_busy,
    is_duplicate,
    is_unavailable,
)
from orchestration.models import Alert, Lease, Worker
from orchestration.models.alert import Severity
from orchestration.workers.leader_monitor import LeaderMonitor
from tests.support.database import another, kill, locked, read_only, reads_fail
from tests.support.operators import led

pytestmark = pytest.mark.django_db(transaction=True)
AWAY, READ_ONLY, AVAILABLE = Availability


def error_of(statement, *parameters):
    with pytest.raises(Error) as raised, connection.cursor() as cursor:
        cursor.execute(statement, parameters)
    connection.close()
    return raised.value


def test_killed_backend_means_unavailable():
    connection.ensure_connection()
    kill()
    assert availability(error_of("SELECT 1")) is AWAY


def test_closed_connection_means_unavailable():
    connection.ensure_connection()
    connection.connection.close()
    assert availability(error_of("SELECT 1")) is AWAY


def test_unreachable_server_means_unavailable(monkeypatch):
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "HOST", "/nowhere")
    assert availability(error_of("SELECT 1")) is AWAY


def test_server_without_writes_is_read_only():
    with read_only():
        error = error_of("UPDATE orchestration_lease SET last_sweep_summary = ''")
        assert availability(error) is READ_ONLY
        assert is_unavailable(error)


def test_idle_in_transaction_timeout_means_unavailable():
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
def test_failed_statement_does_not_mean_unavailable(statement):
    error = error_of(statement)
    assert availability(error) is AVAILABLE
    assert not is_busy(error)


def test_lock_timeout_means_contention():
    with locked("orchestration_lease"):
        error = error_of("SELECT 1 FROM orchestration_lease")
    assert availability(error) is AVAILABLE
    assert is_busy(error)


def test_unique_violation_is_distinguished_from_others():
    led()
    assert is_duplicate(
        error_of("INSERT INTO orchestration_lease SELECT * FROM orchestration_lease")
    )
    assert not is_duplicate(error_of("INSERT INTO orchestration_lease (name) VALUES (NULL)"))


def test_programming_error_does_not_mean_unavailable():
    assert availability(ValueError("no")) is AVAILABLE
    assert availability(psycopg2.ProgrammingError("can't adapt type")) is AVAILABLE


def test_cause_of_an_error_counts():
    connection.ensure_connection()
    kill()
    wrapped = RuntimeError("an application's own")
    wrapped.__cause__ = error_of("SELECT 1")
    assert availability(wrapped) is AWAY


def test_error_in_a_broken_transaction_has_the_first_cause():
    write = transaction.atomic(savepoint=False)(Lease.objects.update)
    with read_only(), transaction.atomic():
        with pytest.raises(Error):
            write(last_sweep_summary="")
        with pytest.raises(TransactionManagementError) as raised:
            Lease.objects.exists()
    assert availability(raised.value) is READ_ONLY


def test_process_reports_again_after_its_connection_was_closed():
    connection.ensure_connection()
    connection.connection.close()
    assert not heartbeat._try_to_report("greeter", stepped_back=heartbeat.never)
    assert heartbeat._try_to_report("greeter", stepped_back=heartbeat.never)
    assert Worker.objects.filter(queue="greeter").exists()


def test_lookout_continues_after_any_error(monkeypatch, caplog):
    monkeypatch.setattr(conf, "LEADER_CHECK_INTERVAL_S", 0.02)
    led()
    alerts.raise_alert(
        "system/supervisor/no_leader", severity=Severity.CRITICAL, title="No supervisor leads"
    )
    with reads_fail("orchestration_lease", "XX000", times=1), LeaderMonitor():
        wait_for(lambda: Alert.objects.get().closed_at, "the leader monitor sees that one leads")
    assert "the leader monitor failed" in caplog.text
    assert "leader-monitor" not in {thread.name for thread in threading.enumerate()}
