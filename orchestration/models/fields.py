"""Database expressions and fields that the models share."""

import json
import os
from hashlib import blake2b
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models.fields.json import KeyTransform

from ..database import clock
from ..decisions.fairness import LONGEST_KEY
from ..payloads.limits import TOO_DEEP, is_too_deep


class DatabaseNow(models.Func):
    """The database's clock at this moment, not at the start of the transaction.

    Within a statement it is read once, by a sub-select: an index cannot be searched for a value that
    may change from row to row. A column's default cannot be a sub-select, and is never resolved.
    """

    function = "clock_timestamp"
    output_field = models.DateTimeField()

    def resolve_expression(self, *args: Any, **kwargs: Any) -> "DatabaseNow":
        """Return the expression as a statement has it."""
        resolved: DatabaseNow = super().resolve_expression(*args, **kwargs)
        resolved.template = "(SELECT %(function)s())"
        return resolved


class Unreadable(str):
    """What is read in place of JSON that Python cannot read, or not walk through: why not."""

    __slots__ = ()


def read_json(text: str) -> Any:
    """Return the value of stored JSON, or an `Unreadable`: a list has other rows to show, a batch to take.

    The doors refuse what is nested too deeply; who writes the tables by SQL passes none.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        return Unreadable(f"it is {TOO_DEEP}")
    except json.JSONDecodeError:
        raise
    except ValueError:  # Python reads no such number, Postgres does
        return Unreadable("it has a number of thousands of digits")
    return Unreadable(f"it is {TOO_DEEP}") if is_too_deep(text, value) else value


class StoredJSON(models.JSONField):
    """A JSON field whose rows can all be read; a value that cannot is an `Unreadable`."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Return the value; one of a key within it comes as the database has it."""
        if isinstance(value, str) and not isinstance(expression, KeyTransform):
            return read_json(value)
        return super().from_db_value(value, expression, connection)

    def deconstruct(self) -> Any:
        """Return the field as migrations have it: as Django's own."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.JSONField", arguments, options


def state_field(states: type[models.TextChoices], **options: Any) -> "models.CharField[str, str]":
    """Return a field that holds one of a set of states: short, and never null."""
    return models.CharField(**{"max_length": 10, "choices": states.choices, **options})


class Prioritized(models.Model):
    """What orders the work: a priority, and within it turns of fairness keys."""

    priority = models.SmallIntegerField(default=0, help_text="Higher goes first.")
    fairness_key = models.CharField(
        max_length=LONGEST_KEY,
        blank=True,
        default="",
        db_default="",
        help_text="Within a priority, keys take turns.",
    )

    class Meta:
        abstract = True


class FollowingUp(models.Model):
    """What is about another task, which it names; nearly all name none."""

    about_workflow = models.CharField(max_length=60, blank=True, default="", db_default="")
    about_reference = models.CharField(
        max_length=100,
        blank=True,
        default="",
        db_default="",
        help_text="Of the task that it is about; that need not exist.",
    )

    class Meta:
        abstract = True


def one_of(name: str, states: type[models.TextChoices], constraint: str) -> models.CheckConstraint:
    """Return the constraint that `name` holds one of `states`."""
    return models.CheckConstraint(
        condition=models.Q(**{f"{name}__in": states.values}), name=constraint
    )


def time_ordered_id() -> UUID:
    """Return a UUID of version 7 (RFC 9562): rows made together lie together in the index."""
    return _version_7(int(clock.now() * 1000), os.urandom(10))


def child_id(parent: UUID, reference: str) -> UUID:
    """Return the id of a child, given that of its parent: the same one again after a restore.

    The keys of its steps are the same then, so its services repeat nothing. It has its parent's time.
    """
    digest = blake2b(reference.encode(), key=parent.bytes, digest_size=10).digest()
    return _version_7(parent.int >> 80, digest)


def _version_7(milliseconds: int, rest: bytes) -> UUID:
    value = (milliseconds << 80) | int.from_bytes(rest)
    value = (value & ~(0xF << 76)) | (0x7 << 76)
    value = (value & ~(0x3 << 62)) | (0x2 << 62)
    return UUID(int=value)
