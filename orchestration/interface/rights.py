"""The rights of an application's own database role: to post, by functions, and no table of the engine."""

from collections.abc import Sequence

from django.db import connection, transaction

from .. import sql

FUNCTIONS = ("orchestration_standings", "orchestration_post", "orchestration_request")
RELATIONS = r"""
SELECT c.relname FROM pg_class c
WHERE c.relname LIKE 'orchestration\_%%' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND c.relnamespace = current_schema()::regnamespace
ORDER BY c.relname
"""
READABLE = r"""
SELECT c.relname FROM pg_class c
WHERE c.relname = ANY(%(names)s) AND c.relnamespace = current_schema()::regnamespace
    AND (has_any_column_privilege(%(role)s, c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')
        OR has_table_privilege(%(role)s, c.oid, 'DELETE, TRUNCATE, TRIGGER'))
ORDER BY c.relname
"""


class StillReadable(Exception):
    """A role has rights on tables of the engine that it inherits; the text says on which."""


@transaction.atomic
def grant(role: str) -> Sequence[str]:
    """Have a role post submissions and requests, and nothing else; return what was done.

    Raises `StillReadable` if it has rights on tables all the same, by another role's or PUBLIC's.
    """
    quoted = connection.ops.quote_name(role)
    schema = connection.ops.quote_name(sql.run("SELECT current_schema()", {})[0][0])
    tables = [name for (name,) in sql.run(RELATIONS, {})]
    done = [
        f"GRANT USAGE ON SCHEMA {schema} TO {quoted}",
        *(f"GRANT EXECUTE ON FUNCTION {name} TO {quoted}" for name in FUNCTIONS),
        f"REVOKE ALL ON {', '.join(tables)} FROM {quoted}",
    ]
    for statement in done:
        sql.run(statement, {})
    if readable := [name for (name,) in sql.run(READABLE, {"role": role, "names": tables})]:
        raise StillReadable(f"{role} still has rights on {', '.join(readable)}")
    return done
