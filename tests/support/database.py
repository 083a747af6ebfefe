"""Real faults of the database: backends that end, statements that fail, a server that takes no writes."""

from contextlib import contextmanager

import psycopg2
from django.db import connection

# For a test's transaction, in which a turn's brief time limit holds: autovacuum, which may be at the same
# table, yields after a second only.
PATIENTLY = "SET LOCAL lock_timeout = DEFAULT"
# Raises as a statement of its own would: a killed backend is killed, a cancelled statement cancelled.
STRIKE = """
CREATE SEQUENCE strikes;
CREATE FUNCTION strike() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('strikes') > {times} THEN
        RETURN true;
    ELSIF '{code}' = '57P01' THEN
        PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(5);
    ELSIF '{code}' = '57014' THEN
        PERFORM pg_cancel_backend(pg_backend_pid()), pg_sleep(5);
    END IF;
    RAISE EXCEPTION 'it is struck' USING ERRCODE = '{code}';
END $$;
"""
ON_WRITING = """
CREATE FUNCTION struck() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM strike();
    RETURN NULL;
END $$;
CREATE TRIGGER struck BEFORE {event} ON {table} EXECUTE FUNCTION struck();
"""
ON_COMMIT = """
CREATE FUNCTION struck() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM strike();
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER struck AFTER {event} ON {table} DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION struck();
"""
# The schema of the user's own name is looked into first.
ON_READING = """
CREATE SCHEMA AUTHORIZATION CURRENT_USER;
CREATE VIEW {user}.{table} AS SELECT * FROM public.{table} WHERE strike();
"""
HEAL = """
DROP SCHEMA IF EXISTS {user} CASCADE;
DROP FUNCTION IF EXISTS struck CASCADE;
DROP FUNCTION strike CASCADE;
DROP SEQUENCE strikes;
"""
ALWAYS = 2**31


@contextmanager
def another():
    """Give a cursor of another connection, in autocommit."""
    known = ("dbname", "user", "password", "host", "port")
    parameters = connection.get_connection_params()
    other = psycopg2.connect(**{name: parameters[name] for name in known if name in parameters})
    try:
        other.autocommit = True
        with other.cursor() as cursor:
            yield cursor
    finally:
        other.close()


def kill():
    """End the backend of this process, as an administrator may."""
    with another() as cursor:
        pid = connection.connection.info.backend_pid
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        assert cursor.fetchone() == (True,)


class Killing:
    """Ends the backend just before its nth statement; `reached` says whether there was an nth."""

    def __init__(self, number):
        self.left = number
        self.reached = False

    def __call__(self, execute, sql, params, many, context):
        self.left -= 1
        if self.left == 0:
            self.reached = True
            kill()
        return execute(sql, params, many, context)


@contextmanager
def killed_before(number):
    """Have the backend end before the nth statement in this block."""
    killing = Killing(number)
    with connection.execute_wrapper(killing):
        yield killing


@contextmanager
def _struck(code, times, how):
    user = connection.settings_dict["USER"]
    with another() as cursor:
        cursor.execute(STRIKE.format(code=code, times=times) + how.replace("{user}", user))
        try:
            yield
        finally:
            cursor.execute(HEAL.format(user=user))


def writes_fail(table, event, code, *, times=ALWAYS):
    """Have each `event` ("INSERT", "UPDATE", "DELETE") on a table fail with a SQLSTATE at first."""
    return _struck(code, times, ON_WRITING.format(table=table, event=event))


def commits_fail(table, event, code, *, times=ALWAYS):
    """Have each transaction with an `event` on a table fail when it commits, at first."""
    return _struck(code, times, ON_COMMIT.format(table=table, event=event))


def reads_fail(table, code, *, times=ALWAYS):
    """Have reading a row of a table fail with a SQLSTATE at first."""
    return _struck(code, times, ON_READING.replace("{table}", table))


@contextmanager
def locked(table):
    """Have another session lock a table; this one waits for locks only shortly."""
    with another() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        with connection.cursor() as mine:
            mine.execute("SET lock_timeout = '50ms'")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")
            connection.close()


@contextmanager
def read_only():
    """Have the server take no writes, as a standby does: neither here nor in new sessions."""
    name = connection.settings_dict["NAME"]
    with connection.cursor() as mine:
        mine.execute("SET default_transaction_read_only = on")
    with another() as cursor:
        cursor.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        try:
            yield
        finally:
            cursor.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
            connection.close()
