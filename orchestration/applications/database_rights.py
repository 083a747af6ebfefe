"""Grant an application's database role the functions to submit by, and no table of the engine."""

from collections.abc import Sequence

from django.db import connection, transaction

from ..database import sql

FUNCTIONS = ("orchestration_submit", "orchestration_request")
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


class TableRightsRemain(Exception):
    """A role still has rights on tables of the engine, by inheritance; the text names them."""


@transaction.atomic
def grant(role: str) -> Sequence[str]:
    """Let a role post submissions and requests only; return the statements that were run.

    Raises `TableRightsRemain` if it has rights on tables all the same, by another role's or PUBLIC's.
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
        raise TableRightsRemain(f"{role} still has rights on {', '.join(readable)}")
    return done
