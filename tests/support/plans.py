"""How Postgres would run a statement."""

import re

from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from orchestration.database.prepared import AS_USUAL

PLANNED = re.compile(r"\s*\(*(SELECT|WITH|UPDATE|DELETE|INSERT)\b")


def plan(statement, parameters):
    """Return the type and the index of a plan's nodes, as if no table could be read or sorted whole."""
    found = explained(statement, parameters, off=("seqscan", "sort"))
    return [(node["Node Type"], node.get("Index Name", "")) for node in found]


@transaction.atomic
def explained(statement, parameters, *, off=("seqscan",)):
    """Return a plan's nodes, from the top down, as if its tables were too large to be read."""
    with connection.cursor() as cursor:
        # a test's transaction may have those of an earlier plan
        cursor.execute(AS_USUAL + "".join(f"SET LOCAL enable_{way} = off;" for way in off))
        cursor.execute(f"EXPLAIN (VERBOSE, FORMAT JSON) {statement}", parameters)
        ((found,),) = cursor.fetchall()
    return list(nodes(found[0]["Plan"]))


def cost(act):
    """Return how many statements an act executes and how many pages they read; it is taken back."""
    with transaction.atomic(), CaptureQueriesContext(connection) as asked:
        act()
        transaction.set_rollback(True)
    statements = [one["sql"] for one in asked if PLANNED.match(one["sql"])]
    with transaction.atomic(), connection.cursor() as cursor:
        read = 0
        for statement in statements:
            cursor.execute(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement.replace('%', '%%')}", ()
            )
            ((found,),) = cursor.fetchall()
            plan = found[0]["Plan"]
            read += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        transaction.set_rollback(True)
    return len(statements), read


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
