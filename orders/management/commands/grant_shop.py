"""`manage.py grant_shop ROLE`: grant the rights of a web process that serves the shop only."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import Error, connection, transaction
from django.db.models.options import Options
from psycopg2 import sql

from orders.lifecycle.message import APPLICATION, EMAIL_WORKFLOW

# the shop reads and writes their tables
APPLICATIONS = ("orders", "sessions", "axes", "account", "mfa", "usersessions")
WRITE = "SELECT, INSERT, UPDATE, DELETE"
# customers create accounts and change passwords
ACCOUNTS = sql.SQL("SELECT, INSERT, UPDATE (password, last_login)")
# The shop's web process pays with gift cards: it issues none, and reads no code that is not sent yet. Nor
# does it decide what goods that came back pay for. It reads the stock, and nothing of what staff correct.
LESS = {
    "orders_stocklevel": "SELECT",
    "orders_stockcorrection": "",
    "orders_giftcard": "SELECT (id, digest, last4, balance, void, currency), UPDATE (balance)",
    "orders_giftuse": "SELECT, INSERT",
    "orders_exchange": "SELECT",
}
# Which rows of a table that staff use, too, are in reach. An account of staff has a flag, or a right.
ROWS = {
    "auth_user": "NOT is_staff AND NOT is_superuser AND orders_has_no_right(id)",
    # of the accounts in reach: the rows of auth_user are hidden from the role here, too
    **dict.fromkeys(
        ("account_emailaddress", "mfa_authenticator", "usersessions_usersession"),
        "EXISTS (SELECT FROM auth_user u WHERE u.id = user_id)",
    ),
    "django_session": "session_key NOT LIKE 'staff.%'",  # sasweb/session_store.py
    "orders_throttle": "key NOT LIKE 'staff-%'",  # orders/rate_limit.py
}
# It runs with the owner's rights: the role may read neither groups nor permissions.
HAS_NO_RIGHT = """
CREATE OR REPLACE FUNCTION orders_has_no_right(account integer) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, {schema}, pg_temp AS $$
SELECT NOT EXISTS (SELECT FROM auth_user_groups g WHERE g.user_id = account)
    AND NOT EXISTS (SELECT FROM auth_user_user_permissions p WHERE p.user_id = account)
$$;
REVOKE ALL ON FUNCTION orders_has_no_right FROM PUBLIC;
GRANT EXECUTE ON FUNCTION orders_has_no_right TO {role};
"""
POLICY = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS {name} ON {table};
CREATE POLICY {name} ON {table} TO {role} USING ({rows}) WITH CHECK ({rows});
"""


class Command(BaseCommand):
    """Grants a role rights on the tables of the shop, sessions, sign-ins and accounts."""

    help = (
        "Grant a database role what a web process with SERVES=shop needs: of the shop's own tables, "
        "and of the engine, by `manage.py grant_application`. Run it again after each migration."
    )

    def add_arguments(self, parser: Any) -> None:
        """Add the role."""
        parser.add_argument("role", help="an existing role that owns no table")

    def handle(self, *_: Any, role: str, **_options: Any) -> None:
        """Grant all rights in one transaction."""
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                for table, rights in _rights():
                    _grant(cursor, role, table, rights)
                # its pods wait until the database has the tables of their release
                see = sql.SQL("GRANT SELECT ON django_migrations TO {}")
                cursor.execute(see.format(sql.Identifier(role)))
                _restrict(cursor, role)
                # its letters are a workflow of their own, without status messages
                more = {"workflow": [EMAIL_WORKFLOW], "stdout": self.stdout}
                call_command("grant_application", role, APPLICATION, **more)
        except Error as problem:
            raise CommandError(str(problem).strip()) from problem


def _rights() -> "Iterator[tuple[Options[Any], sql.SQL]]":
    """Yield the tables, as model options, with their rights."""
    for name in APPLICATIONS:
        for model in apps.get_app_config(name).get_models():
            meta = model._meta  # noqa: SLF001 - public by Django's documentation
            yield meta, sql.SQL(LESS.get(meta.db_table, WRITE))
    yield get_user_model()._meta, ACCOUNTS  # noqa: SLF001 - as above


def _grant(cursor: Any, role: str, of: "Options[Any]", rights: sql.SQL) -> None:
    to = sql.Identifier(role)
    table = sql.Identifier(of.db_table)
    cursor.execute(sql.SQL("REVOKE ALL ON {} FROM {}").format(table, to))
    if not rights.string:
        return
    cursor.execute(sql.SQL("GRANT {} ON {} TO {}").format(rights, table, to))
    cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [of.db_table, of.pk.column])
    ((sequence,),) = cursor.fetchall()
    if sequence:  # already quoted if necessary
        cursor.execute(sql.SQL("GRANT USAGE ON SEQUENCE {} TO {}").format(sql.SQL(sequence), to))


def _restrict(cursor: Any, role: str) -> None:
    """Keep accounts, sessions and limits of staff out of a role's reach; the tables' owner sees all."""
    cursor.execute("SELECT current_schema()")
    ((schema,),) = cursor.fetchall()
    names = {"schema": sql.Identifier(schema), "role": sql.Identifier(role)}
    cursor.execute(sql.SQL(HAS_NO_RIGHT).format(**names))
    for table, rows in ROWS.items():
        names |= {"table": sql.Identifier(table), "name": sql.Identifier(f"rows of {role}"[:63])}
        cursor.execute(sql.SQL(POLICY).format(rows=sql.SQL(rows), **names))
