"""Behind PgBouncer in transaction mode, where each transaction may have another session."""

from contextlib import ExitStack, closing

import pytest
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, Error, connection, connections, transaction

from drill.ha.pooler import Pooler
from drill.waiting import wait_for
from orchestration import conf
from orchestration.assurance.audit import runner, snapshot
from orchestration.cluster import leader_election
from orchestration.database import prepared, session, sql
from orchestration.models import Step
from sasweb.stack import folders
from tests.support.engine import new_task

pytestmark = pytest.mark.django_db(transaction=True)
SESSIONS = 3
TEMPORARY = "SELECT relname FROM pg_class WHERE relpersistence = 't' AND relkind IN ('r', 'v')"


@pytest.fixture
def pooler():
    """Have this process's connection go through a pooler that takes its sessions in turns."""
    pooler = Pooler(folders.data_dir() / "p", size=SESSIONS, patience=1)
    pooler.point(folders.socket_dir())
    pooler.start()
    here = connections[DEFAULT_DB_ALIAS]
    here.close()
    options = {
        **here.settings_dict["OPTIONS"],
        "host": str(pooler.sockets),
        "target_session_attrs": "any",
    }
    del options["options"]
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(here.settings_dict, "OPTIONS", options)
            patch.setitem(here.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
            patch.setattr(here, "execute_wrappers", [])
            _open_sessions(pooler)
            yield pooler
            here.close()
    finally:
        pooler.stop()


def _open_sessions(pooler):
    name = connection.settings_dict["NAME"]
    with ExitStack() as opened:
        others = [opened.enter_context(closing(pooler.connect(name))) for _ in range(SESSIONS)]
        for other in others:
            other.cursor().execute("SELECT 1")  # its transaction stays open
        for other in others:
            other.commit()
    seen = {sql.run("SELECT pg_backend_pid()", {})[0][0] for _ in range(2 * SESSIONS)}
    assert len(seen) > 1, "each transaction had the same session"


@pytest.fixture
def role():
    """Give the role its settings, as the documentation says."""
    for name, value in session.SETTINGS.items():
        sql.run(f"ALTER ROLE postgres SET {name} = '{value}'", {})
    yield
    sql.run("ALTER ROLE postgres RESET ALL", {})


def test_role_without_time_outs_is_named_in_a_sentence(pooler, caplog):
    assert [sentence.split()[0] for sentence in session.missing(connection)] == [
        name for name in session.SETTINGS if name.endswith("timeout")
    ]
    look = session.Look()
    look(connection=connection)
    look(connection=connection)  # once for each process
    assert len(caplog.records) == 3
    assert 'ALTER ROLE "postgres" SET lock_timeout' in caplog.text


def test_role_with_its_settings_lacks_nothing(role, pooler):
    assert session.missing(connection) == []
    sql.run("ALTER ROLE postgres SET default_transaction_isolation = 'serializable'", {})
    pooler.execute("RECONNECT", "pgbouncer")
    assert ["serializable" in sentence for sentence in session.missing(connection)] == [True]


def test_audit_in_slices_leaves_no_table_on_any_session(pooler, monkeypatch):
    monkeypatch.setattr(snapshot, "SLICE", 2)
    tasks = [new_task() for _ in range(5)]
    result = runner.run("ada", ledgers=False)
    assert (result.tasks, result.violations) == (5, [])
    Step.objects.filter(task__in=[tasks[0], tasks[4]]).update(failure_count=3)
    result = runner.run("ada", ledgers=False)
    wrong = {violation.reference for violation in result.violations}
    assert wrong == {tasks[0].reference, tasks[4].reference}  # of the first slice and the last
    assert sql.run(TEMPORARY, {}) == []


def test_limit_stays_where_another_wrapper_was_installed_for_a_while(pooler):
    with connection.execute_wrapper(lambda execute, *arguments: execute(*arguments)):
        session.limit_lock_waits(connection, 1)
    assert [type(wrapper) for wrapper in connection.execute_wrappers] == [session.LockWait]


def test_leader_limits_its_own_waits_alone(pooler):
    leader_election.ensure()
    for _ in range(SESSIONS):
        assert leader_election.acquire("ada")
    limit = (f"{conf.SWEEP_LOCK_TIMEOUT_S:g}s",)
    assert {sql.run("SHOW lock_timeout", {})[0] for _ in range(SESSIONS)} == {limit}
    with transaction.atomic():
        sql.run(sql.BRIEFLY + "SELECT 1", {})
        assert sql.run("SHOW lock_timeout", {}) == [("250ms",)]  # it is not lengthened again
    for _ in range(SESSIONS):
        assert pooler.execute("SHOW lock_timeout", connection.settings_dict["NAME"]) == [("0",)]


def test_look_at_migrations_limits_no_session(pooler):
    call_command("migrate", "--check", verbosity=0)
    name = connection.settings_dict["NAME"]
    assert {pooler.execute("SHOW lock_timeout", name)[0] for _ in range(2 * SESSIONS)} == {("0",)}


def test_pooler_without_a_server_means_unavailable(pooler, tmp_path):
    pooler.repoint(tmp_path)  # an open connection to the pooler stays
    with pytest.raises(Error) as raised:
        sql.run("SELECT 1", {})
    assert sql.availability(raised.value) is sql.Availability.AWAY
    connection.close()
    pooler.repoint(folders.socket_dir())
    assert wait_for(_answers, "the pooler finds its server again", 10)


def _answers():
    try:
        return sql.run("SELECT 1", {}) == [(1,)]
    except Error:
        connection.close()
        return False


def test_statements_of_the_hot_path_find_no_session_of_theirs(pooler):
    new_task(reference="r1")
    text = "SELECT reference FROM orchestration_task WHERE reference = ANY(%(names)s)"
    for _ in range(2 * SESSIONS):
        assert prepared.run(text, {"names": ["r1"]}) == [("r1",)]
