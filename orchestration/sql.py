"""Set-based SQL: one statement for a whole batch, given as columns."""

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

import psycopg2
from django.db import connection
from django.db.models import BooleanField, Expression, Field, FloatField, Func, QuerySet, TextField

from . import conf

Shape = TypeVar("Shape")

# Before the first statement of a transaction that many wait for, and sent with it: from there to its
# end no lock is waited for longer. What is held by one of ours is held for less.
BRIEFLY = f"SET LOCAL lock_timeout = '{conf.LOCK_WAIT}s';"


class Availability(Enum):
    """What an error says of the database as a whole."""

    AWAY = "the connection is gone, or cannot be made"
    READ_ONLY = "the server takes no writes: it is a standby, after a failover say"
    AVAILABLE = "the database works: the error belongs to the statement, row or code that raised it"


# SQLSTATEs after which a connection is of no use: the server ended it, or refuses to make it.
GONE = {
    "25P03",  # idle in a transaction for too long
    "25P04",  # a transaction took too long
    "53300",  # too many connections
    "57P01",  # an administrator ended it
    "57P02",  # another server process crashed
    "57P03",  # the server starts or stops
    "57P04",  # the database was dropped
    "57P05",  # idle for too long
}
CONNECTION = "08"  # the class of connection exceptions
READ_ONLY = "25006"
UNIQUE = "23505"
# SQLSTATEs after which the same may work at once: others had the rows, and the statement gave way.
BUSY = {
    "40001",  # a serialization failure
    "40P01",  # a deadlock
    "55P03",  # a lock was not available in time
}


def availability(error: BaseException) -> Availability:
    """Return what an error says of the database, by its SQLSTATE or its cause's.

    The exception's class says too little: psycopg2 raises OperationalError for a lock time-out, and a
    plain DatabaseError without a SQLSTATE for a connection that broke under a statement.
    """
    cause = _cause(error)
    if cause is None:
        return Availability.AVAILABLE
    if cause.pgcode == READ_ONLY:
        return Availability.READ_ONLY
    return Availability.AWAY if _is_gone(cause) else Availability.AVAILABLE


def is_unavailable(error: BaseException) -> bool:
    """Return whether an error is the whole database's: what was under way is still to be done."""
    return availability(error) is not Availability.AVAILABLE


def is_busy(error: BaseException) -> bool:
    """Return whether others had the rows that a statement needed: the same may work at once."""
    cause = _cause(error)
    return cause is not None and cause.pgcode in BUSY


def is_twin(error: BaseException) -> bool:
    """Return whether there is a row already with what must be unique."""
    cause = _cause(error)
    return cause is not None and cause.pgcode == UNIQUE


def _cause(error: BaseException) -> psycopg2.Error | None:
    """Return the driver's error that an error is, or was raised from."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, psycopg2.Error):
        cause = cause.__cause__
    return cause


def _is_gone(error: psycopg2.Error) -> bool:
    code = error.pgcode
    if code is not None:
        return code in GONE or code.startswith(CONNECTION)
    # Without a SQLSTATE no server answered; but mistakes of the client's are programming errors.
    without = type(error) in {psycopg2.DatabaseError, psycopg2.OperationalError}
    return without or isinstance(error, psycopg2.InterfaceError)


def run(statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Execute `statement`; return the rows it returns, if it returns any."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


class Given(Expression):
    """A value in a queryset that a `compiled` statement is given each time it runs, by name.

    `cast` is its type in Postgres, where that does not follow from what it is compared with.
    """

    def __init__(self, name: str, cast: str = "", output_field: "Field[Any, Any] | None" = None):
        super().__init__(output_field=output_field or TextField())
        self.text = f"(%%({name})s{'::' if cast else ''}{cast})"

    def as_sql(self, *_: Any, **__: Any) -> tuple[str, tuple[Any, ...]]:
        """Return the placeholder, which is filled when the statement runs."""
        return self.text, ()


class Among(Func):
    """Whether a column's value is among those of an array that is `Given`."""

    arg_joiner = " = ANY "
    template = "%(expressions)s"
    output_field = BooleanField()


class UnixTime(Func):
    """A time as seconds since 1970."""

    template = "extract(epoch FROM %(expressions)s)::float8"
    output_field = FloatField()


def compiled(queryset: QuerySet[Any, Any]) -> str:
    """Return a queryset's statement, for `run` with what is `Given` in it.

    It is the same text each time, so callers keep it: building a queryset and compiling it takes longer
    than running it. One that locks rows has to be compiled in a transaction, as Django has it.
    """
    statement, parameters = queryset.query.sql_with_params()
    text: str = connection.ops.compose_sql(statement, parameters)  # type: ignore[attr-defined]
    return text


def record(kind: type[Shape], row: Sequence[Any]) -> Shape:
    """Return a row as a dataclass of this kind, whose fields are in the order of the columns."""
    names = vars(kind)["__dataclass_fields__"]
    return kind(**dict(zip(names, row, strict=True)))


def first_line(error: Exception) -> str:
    """Return what an error says, without the details that the database adds in further lines."""
    return storable(str(error)).split("\n")[0]


def storable(text: str) -> str:
    """Return a text without what the database cannot store: NUL, and halves of characters."""
    return text.replace("\0", "").encode(errors="replace").decode().strip()


def as_json(values: Sequence[Any]) -> list[str]:
    """Return a column of JSON texts, for `%(name)s::jsonb[]`."""
    return [json.dumps(value, separators=(",", ":")) for value in values]


def as_array(words: Sequence[str]) -> str:
    """Return words as the text of a Postgres array: a column of arrays travels as texts."""
    quoted = (word.replace("\\", "\\\\").replace('"', '\\"') for word in words)
    return "{" + ",".join(f'"{word}"' for word in quoted) + "}"
