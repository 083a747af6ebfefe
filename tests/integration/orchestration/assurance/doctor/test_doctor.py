"""The doctor on real servers with wrong settings."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection, connections

from orchestration.assurance.doctor import database, processes, redis
from orchestration.messaging import queues
from orchestration.models import Worker
from tests.support.database import another
from tests.support.operators import staffed

pytestmark = pytest.mark.django_db
AS_TESTED = {"durability", "superuser", "synchronous_commit"}  # fsync=off: drill.servers.FAST


def anew(function):
    """Call a function with a connection of its own, which has the settings of a new one."""

    def run():
        try:
            return function()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


def names_of(subject, facts):
    return {message.id.partition(".")[2] for message in subject.judge(facts)}


@contextmanager
def altered(change, back):
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with another() as cursor:
        cursor.execute(change.format(name=name))
        try:
            yield
        finally:
            cursor.execute(back.format(name=name))


@pytest.mark.parametrize(
    ("change", "back", "check"),
    [
        ("SELECT 1", "SELECT 1", None),
        # connections ask for their own
        (
            "ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'",
            "ALTER DATABASE {name} RESET default_transaction_isolation",
            None,
        ),
        (
            "ALTER DATABASE {name} SET track_counts = off",
            "ALTER DATABASE {name} RESET track_counts",
            "autovacuum",
        ),
        (
            "ALTER DATABASE {name} CONNECTION LIMIT 20",
            "ALTER DATABASE {name} CONNECTION LIMIT -1",
            "connections",
        ),
        (
            "INSERT INTO django_migrations (app, name, applied) VALUES ('orders', '0999_x', now())",
            "DELETE FROM django_migrations WHERE name = '0999_x'",
            "migrations",
        ),
        (
            "UPDATE django_migrations SET app = 'gone' WHERE app = 'axes'",
            "UPDATE django_migrations SET app = 'axes' WHERE app = 'gone'",
            "migrations",
        ),
    ],
)
def test_database_with_a_wrong_setting(change, back, check):
    with altered(change, back):
        facts = anew(database.gather)
    assert names_of(database.subject, facts) == AS_TESTED | ({check} if check else set())
    assert abs(facts.clock_ahead) < 1


def test_database_whose_commits_are_not_written_at_once():
    with altered(
        "ALTER DATABASE {name} SET synchronous_commit = off",
        "ALTER DATABASE {name} RESET synchronous_commit",
    ):
        facts = anew(database.gather)
    (message,) = database.synchronous_commit(facts)
    assert "crash" in message.msg


def test_redis_with_wrong_settings():
    client = queues.connection()
    assert names_of(redis.subject, redis.gather()) == set()
    client.config_set("maxmemory-policy", "allkeys-lru")
    client.config_set("maxmemory", str(client.info()["used_memory"] + 1000))
    try:
        assert names_of(redis.subject, redis.gather()) == {"eviction", "memory"}
        client.config_set("timeout", 60)
        assert "idle_connections" in names_of(redis.subject, redis.gather())
    finally:
        client.config_set("timeout", 0)
        client.config_set("maxmemory", "0")
        client.config_set("maxmemory-policy", "noeviction")


def test_redis_that_hangs(hanging_redis):
    assert [message.id for message in redis.subject.examine()] == ["redis.unreachable"]


def test_processes_that_are_missing():
    facts = processes.gather()
    assert len(facts.unserved) == facts.queues
    assert facts.leaderless == ["supervisor", "housekeeper"]
    staffed()
    assert names_of(processes.subject, processes.gather()) == set()
    Worker.objects.filter(queue="audit").delete()
    Worker.objects.filter(queue="alerts").update(clock_offset=60)
    facts = processes.gather()
    assert facts.unserved == ["audit"]
    assert names_of(processes.subject, facts) == {"workers", "clocks"}


def test_doctor_reports_findings_of_engine_and_project():
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", "--json", "--seconds", "60", stdout=out)
    assert ended.value.code == 1
    findings = json.loads(out.getvalue())["findings"]
    ids = {finding["id"] for finding in findings}
    assert {"database.durability", "processes.leader", "settings.environment"} <= ids
    assert not {name for name in ids if name.endswith(".failed")}
    assert {"level", "problem", "remedy"} <= findings[0].keys()
    assert findings[0]["level"] == "error"
