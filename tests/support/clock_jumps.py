"""Jumps of the database's clock, as rows look after them: the clock of the tests' Postgres cannot be set."""

from datetime import timedelta

import pytest
from django.db.models import F

from orchestration.models import ClockJump
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.clock_jump import allow_for_jump


def shifted(query, seconds, *columns):
    """Have rows look as after a jump: their times are as the clock was before."""
    query.update(**{name: F(name) - timedelta(seconds=seconds) for name in columns})


def jump(seconds, since=1.0):
    return allow_for_jump(seconds, handled=known(), since=since, by="supervisor-1")


def known():
    return sum(ClockJump.objects.values_list("seconds", flat=True))


def left(row, column):
    """Return the seconds until a time of a row, on the database's clock."""
    annotated = type(row).objects.annotate(left=F(column) - DatabaseNow()).get(pk=row.pk)
    return annotated.left.total_seconds()


def near(seconds):
    return pytest.approx(seconds, abs=2)
