"""How Postgres would run a statement."""

import json

from django.db import connection, transaction


def plan(statement, parameters):
    """Return the nodes of a plan, from the top down, with the index each uses."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}", parameters)
        ((found,),) = cursor.fetchall()
    whole = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return [(node["Node Type"], node.get("Index Name", "")) for node in nodes(whole)]


@transaction.atomic
def explained(statement, parameters, *, off=("seqscan",)):
    """Return the nodes of a statement's plan, as if its tables were too large to be read."""
    with connection.cursor() as cursor:
        for way in off:
            cursor.execute(f"SET LOCAL enable_{way} = off")
        cursor.execute(f"EXPLAIN (VERBOSE, FORMAT JSON) {statement}", parameters)
        ((found,),) = cursor.fetchall()
    return list(nodes(found[0]["Plan"]))


def nodes(top):
    """Yield a node of a plan, and all below it."""
    yield top
    for part in top.get("Plans", ()):
        yield from nodes(part)
