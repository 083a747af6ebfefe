"""Set-based SQL: one statement for a whole batch, given as columns."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError, connection

Shape = TypeVar("Shape")

NOW = "clock_timestamp()"
# the database cannot be asked now: whatever was under way is still to be done, and nobody's fault
DATABASE_AWAY = (OperationalError, InterfaceError)


def run(statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Execute `statement`; return the rows it returns, if it returns any."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def record(kind: type[Shape], row: Sequence[Any]) -> Shape:
    """Return a row as a dataclass of this kind, whose fields are in the order of the columns."""
    names = vars(kind)["__dataclass_fields__"]
    return kind(**dict(zip(names, row, strict=True)))


def first_line(error: Exception) -> str:
    """Return what an error says, without the details that the database adds in further lines."""
    return str(error).strip().split("\n")[0]


def as_json(values: Sequence[Any]) -> list[str]:
    """Return a column of JSON texts, for `%(name)s::jsonb[]`."""
    return [json.dumps(value, separators=(",", ":")) for value in values]


def as_array(words: Sequence[str]) -> str:
    """Return words as the text of a Postgres array: a column of arrays travels as texts."""
    quoted = (word.replace("\\", "\\\\").replace('"', '\\"') for word in words)
    return "{" + ",".join(f'"{word}"' for word in quoted) + "}"
