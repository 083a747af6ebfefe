"""Statements that are ended when they take longer than their reader would wait."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, connections, transaction

from . import sql


class TooSlow(Exception):
    """A statement took longer than it may."""


@contextmanager
def time_limit(seconds: float, using: str, ways: str = "") -> Iterator[None]:
    """Limit the time of each statement to a database in this context. Raises `TooSlow`.

    It is a transaction: at a pooler, a setting must not outlive it. `ways` are further settings for it.
    """
    try:
        with transaction.atomic(using=using):
            with connections[using].cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = {int(seconds * 1000)};{ways}")
            yield
    except DatabaseError as error:
        if sql.is_cancelled(error):
            raise TooSlow from error
        raise
