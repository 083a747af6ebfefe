"""How Postgres would run a statement."""

import json

from django.db import connection


def plan(statement, parameters):
    """Return the nodes of a plan, from the top down, with the index each uses."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}", parameters)
        ((found,),) = cursor.fetchall()
    nodes = []

    def walk(node):
        nodes.append((node["Node Type"], node.get("Index Name", "")))
        for child in node.get("Plans", ()):
            walk(child)

    walk((json.loads(found) if isinstance(found, str) else found)[0]["Plan"])
    return nodes
