"""How Postgres would run a statement."""

import re

from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from orchestration.database.prepared import AS_USUAL
from tests.support.database import PATIENTLY

# What a table's statistics say depends on which tests ran before, and on whether autovacuum came by.
FORGET = """
UPDATE pg_class SET reltuples = -1, relpages = 0
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r';
DELETE FROM pg_statistic USING pg_class c WHERE starelid = c.oid
AND c.relnamespace = current_schema()::regnamespace;
"""
# What a transaction has read of tables and indexes, by any statement, and to plan it
PAGES = """
SELECT coalesce(sum(pg_stat_get_xact_blocks_fetched(oid)), 0)::int FROM pg_class
WHERE relnamespace = current_schema()::regnamespace
"""
PLANNED = re.compile(r"\s*\(*(SELECT|WITH|UPDATE|DELETE|INSERT)\b")


def plan(statement, parameters):
    """Return the type and the index of a plan's nodes, as if no table could be read or sorted whole."""
    plan_nodes = explained(statement, parameters, off=("seqscan", "sort"))
    return [(node["Node Type"], node.get("Index Name", "")) for node in plan_nodes]


@transaction.atomic
def explained(statement, parameters, *, off=("seqscan",), measured=False):
    """Return a plan's nodes, from the top down, as if its tables were too large to be read.

    Of few rows every index costs the same, so the planner chooses any of them. Unless the tables are
    `measured`, being full and analysed, it sees tables of ten pages or more and nothing of their values.
    """
    with connection.cursor() as cursor:
        # a test's transaction may have those of a turn
        cursor.execute(AS_USUAL + "".join(f"SET LOCAL enable_{way} = off;" for way in off))
        if not measured:
            cursor.execute(FORGET)
        cursor.execute(f"EXPLAIN (VERBOSE, FORMAT JSON) {statement}", parameters)
        ((plans,),) = cursor.fetchall()
    transaction.set_rollback(True)
    return list(nodes(plans[0]["Plan"]))


def analyse(*tables):
    """Tell the planner what tables hold."""
    with connection.cursor() as cursor:
        cursor.execute(f"{PATIENTLY}; ANALYZE {', '.join(tables)}")


def cost(act):
    """Return how many statements an act executes and how many pages they read; it is taken back.

    Prepared statements are left out, and what is read to plan the others: see `spent`.
    """
    with transaction.atomic(), CaptureQueriesContext(connection) as asked:
        act()
        transaction.set_rollback(True)
    statements = [query["sql"] for query in asked if PLANNED.match(query["sql"])]
    with transaction.atomic(), connection.cursor() as cursor:
        read = 0
        for statement in statements:
            cursor.execute(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement.replace('%', '%%')}", ()
            )
            ((plans,),) = cursor.fetchall()
            plan = plans[0]["Plan"]
            read += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        transaction.set_rollback(True)
    return len(statements), read


def spent(act):
    """Return how many statements an act sends and how many pages are read, planned; it is taken back."""
    with transaction.atomic():
        act()  # its prepared statements are planned again after an ANALYZE
        transaction.set_rollback(True)
    with transaction.atomic(), connection.cursor() as cursor:
        before = _pages(cursor)
        with CaptureQueriesContext(connection) as sent:
            act()
        pages = _pages(cursor) - before
        transaction.set_rollback(True)
    return len(sent), pages


def _pages(cursor):
    cursor.execute(PAGES)
    return cursor.fetchone()[0]


def nodes(top):
    """Yield a node of a plan, and all below it."""
    yield top
    for part in top.get("Plans", ()):
        yield from nodes(part)


def looking(limit):
    """Return the parameters of a statement that looks for the greeter's next steps."""
    return {
        "agents": ["greeter"],
        "isolated": [False],
        "from_turn": [0],
        "pending_from": ["-infinity"],
        "aged_after": [60.0],
        "limits": [limit],
        "excluded": [],
        "steps_held": False,
    }
