"""What the doctor finds in facts about the database, Redis and the processes."""

from dataclasses import replace

import pytest
from django.core.checks import ERROR, INFO, WARNING

from orchestration.assurance.doctor import database, processes, redis

SETTINGS = {
    "statement_timeout": "30000", "lock_timeout": "8000",
    "idle_in_transaction_session_timeout": "10000", "max_connections": "200",
    "superuser_reserved_connections": "3", "reserved_connections": "0",
    "transaction_isolation": "read committed", "synchronous_commit": "on",
    "synchronous_standby_names": "*", "fsync": "on", "full_page_writes": "on", "autovacuum": "on",
    "track_counts": "on", "server_encoding": "UTF8",
}  # fmt: skip
SOUND = database.Database(
    clock_ahead=0.01, version=16, settings=SETTINGS, read_only=False, connections=20,
    superuser=False, role_limit=-1, database_limit=-1, not_vacuumed=[], user="shop", name="sas",
    queues=10, unapplied=[], unknown=[],
)  # fmt: skip


def findings(subject, facts):
    messages = subject.judge(facts)
    assert all(message.msg.endswith(".") and message.hint for message in messages)
    return {(message.id.partition(".")[2], message.level) for message in messages}


def setting(**changed):
    return {"settings": SETTINGS | changed}


def test_sound_database_has_no_findings():
    assert findings(database.subject, SOUND) == set()


@pytest.mark.parametrize(
    ("changes", "check", "level"),
    [
        ({"version": 14}, "version", ERROR),
        (setting(server_encoding="SQL_ASCII"), "encoding", ERROR),
        ({"read_only": True}, "read_only", ERROR),
        (setting(transaction_isolation="serializable"), "isolation", ERROR),
        (setting(synchronous_commit="off"), "synchronous_commit", ERROR),
        (setting(synchronous_commit="local"), "synchronous_commit", WARNING),
        (setting(synchronous_standby_names=""), "synchronous_commit", INFO),
        (setting(fsync="off"), "durability", ERROR),
        (setting(full_page_writes="off"), "durability", ERROR),
        (setting(autovacuum="off"), "autovacuum", ERROR),
        (setting(track_counts="off"), "autovacuum", ERROR),
        ({"not_vacuumed": ["orchestration_step"]}, "autovacuum", WARNING),
        (setting(statement_timeout="0"), "timeouts", WARNING),
        (setting(idle_in_transaction_session_timeout="0"), "timeouts", WARNING),
        (setting(statement_timeout="600000"), "timeouts", WARNING),
        (setting(lock_timeout="30000"), "timeouts", WARNING),
        (setting(idle_session_timeout="5000"), "idle_connections", WARNING),
        (setting(max_connections="30"), "connections", WARNING),
        ({"role_limit": 10}, "connections", WARNING),
        ({"database_limit": 10}, "connections", WARNING),
        ({"connections": 180}, "connections", WARNING),
        ({"superuser": True}, "superuser", INFO),
        ({"unapplied": ["orders.0009_new"]}, "migrations", ERROR),
        ({"unknown": ["orders.0009_new"]}, "migrations", INFO),
        ({"clock_ahead": -2.0}, "clock", WARNING),
        ({"clock_ahead": 60.0}, "clock", ERROR),
    ],
)
def test_database_with_one_fault_has_that_finding_only(changes, check, level):
    assert findings(database.subject, replace(SOUND, **changes)) == {(check, level)}


REDIS = {
    "redis_version": "7.2.4", "cluster_enabled": 0, "role": "master", "maxmemory": 100,
    "maxmemory_policy": "noeviction", "used_memory": 10, "rdb_last_bgsave_status": "ok",
    "aof_last_write_status": "ok", "aof_enabled": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, set()),
        ({"redis_version": "6.2.1"}, {("version", ERROR)}),
        ({"cluster_enabled": 1}, {("cluster", ERROR)}),
        ({"role": "slave"}, {("replica", ERROR)}),
        ({"maxmemory_policy": "allkeys-lru"}, {("eviction", WARNING)}),
        ({"maxmemory_policy": "allkeys-lru", "maxmemory": 0}, {("eviction", INFO)}),
        ({"used_memory": 90}, {("memory", WARNING)}),
        ({"timeout": "5"}, {("idle_connections", INFO)}),
        ({"tcp-keepalive": "0"}, {("idle_connections", WARNING)}),
        ({"aof_last_write_status": "err"}, {("persistence", ERROR)}),
        ({"aof_enabled": 0}, {("persistence", INFO)}),
    ],
)
def test_redis_with_one_fault_has_that_finding_only(changes, expected):
    assert findings(redis.subject, REDIS | changes) == expected


RUNNING = processes.Processes(queues=3, unserved=[], leaderless=[], clocks={})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, set()),
        ({"unserved": ["audit"]}, {("workers", ERROR)}),
        ({"unserved": ["a", "b", "c"]}, {("workers", ERROR)}),
        ({"leaderless": ["supervisor"]}, {("leader", ERROR)}),
        ({"clocks": {"audit-1 on h": 40.0}}, {("clocks", WARNING)}),
    ],
)
def test_processes_with_one_fault_have_that_finding_only(changes, expected):
    assert findings(processes.subject, replace(RUNNING, **changes)) == expected
