"""Run SQL statements over whole batches, and classify database errors."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from logging import Logger
from typing import Any, TypeVar

import psycopg2
from django.db import connection, connections
from django.db.models import (
    BooleanField,
    Expression,
    Field,
    FloatField,
    Func,
    Model,
    Q,
    QuerySet,
    TextField,
)
from django.db.models.sql import Query
from psycopg2.extensions import adapt

from .. import conf
from ..payloads.text import as_text
from . import replica

Shape = TypeVar("Shape")
Row = TypeVar("Row", bound=Model)
NUMBERS = {int, float, bool}


class ConcurrentUpdate(Exception):
    """A row is not what it was when its change was decided: none of this may be committed."""


# Sent with the first statement of a transaction that many others wait for: limits each wait for a lock
# until its end. The engine itself holds locks for less.
BRIEFLY = f"SET LOCAL lock_timeout = '{conf.LOCK_TIMEOUT_S}s';"


class Availability(Enum):
    """The state of the whole database, as an error shows it."""

    AWAY = "the connection is gone, or cannot be made"
    READ_ONLY = "the server takes no writes: it is a standby, after a failover say"
    AVAILABLE = "the database works: the error belongs to the statement, row or code that raised it"


# SQLSTATEs after which a connection is unusable: the server ended or refused it.
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
CANCELLED = "57014"  # the statement took longer than it may
# SQLSTATEs of prepared statements that are to be prepared anew: a migration changed what one returns, or
# what the connection has is not what this process remembers.
UNPREPARED = {"0A000", "26000", "42P05"}
# SQLSTATEs after which a retry may succeed at once: other sessions had the rows.
BUSY = {
    "40001",  # a serialization failure
    "40P01",  # a deadlock
    "55P03",  # a lock was not available in time
}


def availability(error: BaseException) -> Availability:
    """Return the state of the database, by the SQLSTATE of an error or of its cause.

    The exception's class is not enough: psycopg2 raises OperationalError for a lock timeout, and a
    plain DatabaseError without a SQLSTATE for a connection that broke under a statement.
    """
    cause = _cause(error)
    if cause is None:
        return Availability.AVAILABLE
    if cause.pgcode == READ_ONLY:
        return Availability.READ_ONLY
    return Availability.AWAY if _is_gone(cause) else Availability.AVAILABLE


def is_unavailable(error: BaseException) -> bool:
    """Return whether an error concerns the whole database, so that the work must be repeated.

    >>> from django.db import DatabaseError
    >>> try:
    ...     task = submit("greet", reference="42", data={"name": "Ada"})
    ... except DatabaseError as error:
    ...     if not is_unavailable(error):
    ...         raise  # else answer 503
    """
    return availability(error) is not Availability.AVAILABLE


def log_end(logger: Logger, what: str, error: BaseException, *, brief: bool = False) -> bool:
    """Log the error that ended some work; return whether the database is unavailable.

    It is logged without a traceback then, or if it is to be `brief`.
    """
    unavailable = is_unavailable(error)
    if unavailable or brief:
        logger.error("%s must wait: %s", what, first_line(error))
    else:
        logger.error("%s failed", what, exc_info=error)
    return unavailable


def is_busy(error: BaseException) -> bool:
    """Return whether other sessions had the rows of a statement: a retry may succeed at once.

    >>> from django.db import IntegrityError
    >>> is_busy(IntegrityError("duplicate key"))  # no use in a retry
    False
    """
    cause = _cause(error)
    return isinstance(error, ConcurrentUpdate) or (cause is not None and cause.pgcode in BUSY)


def is_cancelled(error: BaseException) -> bool:
    """Return whether a statement was ended, as it took longer than it may."""
    cause = _cause(error)
    return cause is not None and cause.pgcode == CANCELLED


def is_duplicate(error: BaseException) -> bool:
    """Return whether an error is a violation of a unique constraint."""
    cause = _cause(error)
    return cause is not None and cause.pgcode == UNIQUE


def is_unprepared(error: BaseException) -> bool:
    """Return whether a statement failed because it has to be prepared anew."""
    cause = _cause(error)
    return cause is not None and cause.pgcode in UNPREPARED


def _cause(error: BaseException) -> psycopg2.Error | None:
    """Return the driver's error in an exception's chain of causes, if any."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, psycopg2.Error):
        cause = cause.__cause__
    return cause


def _is_gone(error: psycopg2.Error) -> bool:
    code = error.pgcode
    if code is not None:
        return code in GONE or code.startswith(CONNECTION)
    # Without a SQLSTATE no server answered. Other classes are errors of the calling code.
    without = type(error) in {psycopg2.DatabaseError, psycopg2.OperationalError}
    return without or isinstance(error, psycopg2.InterfaceError)


def run(statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Execute `statement`; return its rows, or an empty list. See `replica` for pages that only show."""
    with connections[replica.alias()].cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


class Parameter(Expression):
    """A named parameter of a `compiled` queryset; it gets a value each time the statement runs.

    `cast` is its Postgres type, where Postgres cannot infer it.
    """

    def __init__(self, name: str, cast: str = "", output_field: "Field[Any, Any] | None" = None):
        super().__init__(output_field=output_field or TextField())
        self.text = f"(%%({name})s{'::' if cast else ''}{cast})"

    def as_sql(self, *_: Any, **__: Any) -> tuple[str, tuple[Any, ...]]:
        """Return the placeholder of the parameter."""
        return self.text, ()


class Among(Func):
    """Whether a column's value is in a `Parameter` array."""

    arg_joiner = " = ANY "
    template = "%(expressions)s"
    output_field = BooleanField()


class UnixTime(Func):
    """A time as seconds since 1970."""

    template = "extract(epoch FROM %(expressions)s)::float8"
    output_field = FloatField()


MANY = 987_654_321  # stands for a limit that is given later


def compiled(queryset: QuerySet[Any, Any]) -> str:
    """Return a queryset's statement, for `run` with values of its `Parameter`s.

    Callers cache it: building and compiling a queryset takes longer than running it. A queryset that
    locks rows must be compiled in a transaction, as Django requires. A queryset of the first `MANY` takes
    their number as the parameter `limit`.
    """
    text: str = connection.ops.compose_sql(*queryset.query.sql_with_params())  # type: ignore[attr-defined]
    return text.replace(f"LIMIT {MANY}", "LIMIT %(limit)s")


def condition(model: type[Model], which: Q) -> str:
    """Return a condition on a model's rows as SQL, with its values, which are ASCII; needs no connection."""
    if not which:
        return "true"
    query = Query(model)
    where = query.build_where(which)
    text, values = where.as_sql(query.get_compiler(connection=connection), connection)
    return text % tuple(adapt(value).getquoted().decode() for value in values)


def record(kind: type[Shape], row: Sequence[Any]) -> Shape:
    """Return a row as a dataclass whose fields are in the order of the columns."""
    names = vars(kind)["__dataclass_fields__"]
    return kind(**dict(zip(names, row, strict=True)))


def lock(rows: "QuerySet[Row]", **options: Any) -> "QuerySet[Row]":
    """Lock rows, without those that other sessions have locked; see `select_for_update` for options."""
    return rows.select_for_update(skip_locked=True, **options)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, without the database's details."""
    return storable(str(error)).split("\n")[0]


def storable(text: str) -> str:
    """Return a text without the characters that Postgres cannot store: NUL, lone surrogates."""
    return text.replace("\0", "").encode(errors="replace").decode().strip()


def as_json(values: Iterable[Any]) -> list[str]:
    """Return values as JSON texts, for `%(name)s::jsonb[]`."""
    return [as_text(value) for value in values]


def as_array(values: Sequence[Any]) -> str:
    """Return values as the text of a Postgres array: one token to parse, not an expression for each."""
    kinds = {*map(type, values)}
    if kinds <= NUMBERS:
        return "{" + ",".join(map(str, values)) + "}"
    if kinds == {str}:  # all at once; NUL, which Postgres has in no text, parts them meanwhile
        text = "\0".join(values)
        if text.count("\0") >= len(values):
            raise ValueError("a text cannot contain NUL characters")
        return '{"' + _escaped(text).replace("\0", '","') + '"}'
    return "{" + ",".join([_element(value) for value in values]) + "}"


def _element(value: Any) -> str:
    if isinstance(value, str):
        return f'"{_escaped(value)}"'
    return "NULL" if value is None else str(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
