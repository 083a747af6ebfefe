"""Lanes: tables whose rows are due at a time, done once, retried after a failure, or set aside.

A `Lane` names the columns of such a table. From these come its conditions, for the ORM and as SQL, and the
statements that fail, retry and close rows. None of them reads what a row contains: it may be unreadable.
"""

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from django.apps import apps
from django.db import models
from django.db.models import Case, F, OrderBy, Q, QuerySet, Value, When
from django.db.models.expressions import RawSQL

from .. import conf
from . import sql

Chance = Callable[[], float]  # random numbers from 0 to 1
CLOCK = "(SELECT clock_timestamp())"  # read once: an index cannot be searched for what may change
NOW = RawSQL(CLOCK, (), models.DateTimeField())  # noqa: S611 - a constant
LOCK = "FOR UPDATE OF m SKIP LOCKED"

FAIL = """
UPDATE {table} SET tries = {tries}, {error} = %(reason)s{problem},
    {due_at} = CASE WHEN {refused} THEN {idle} ELSE clock_timestamp() + {wait} END,
    {refused_at} = CASE WHEN {refused} THEN clock_timestamp() END
WHERE id = ANY(%(ids)s) AND {open}
RETURNING id, {group}, {label}, {about}, tries, {refused_at} IS NOT NULL
"""


class Problem(models.TextChoices):
    """Why a row waits for its next try."""

    FAILING = "failing", "Error of the database or in the code of the application"
    UNKNOWN = "unknown", "Unknown workflow: a worker of another release may have it"


class State(models.TextChoices):
    """The state of a row that failed: what happens next."""

    WAITING = "waiting", "Waiting for a retry"
    UNKNOWN = "unknown", "Unknown workflow"  # it waits, too
    REFUSED = "refused", "Refused or given up"  # until a person acts
    CLOSED = "closed", "Closed"  # nothing any more


class Failure(NamedTuple):
    """A row that failed: its group, what it is, its failures, and whether it was set aside."""

    id: int
    group: str
    label: str
    workflow: str
    reference: str
    tries: int
    refused: bool


def _is_null(column: str, null: bool = True) -> Q:
    return Q(**{f"{column}__isnull": null})


@dataclass(frozen=True, kw_only=True)
class Lane:
    """A table whose rows are each done once. Most fields are columns; empty: there is none.

    Rows of one `group` may fail for one reason. `label`, `about` and `task` are SQL: what a row is, which
    workflow and reference it is about, and which task.
    Done rows have a `done_at`, or are deleted. A row is refused, or given up, at `refused_at`, until a
    person has it retried, or closes it. Without that column, a row without a next try is refused.
    `failing`, `unknown` and `refused` are titles of alerts; `{}` is the group.

    `leased` rows are delivered outside of transactions: each claim counts as a try, and moves `due_at`
    ahead. A row older than `max_age_s` is given up at a failure, after `least_tries`.
    """

    name: str
    model: str
    group: str
    label: str
    due_at: str
    error: str = ""
    problem: str = ""
    refused_at: str = ""
    closed_at: str = ""
    done_at: str = ""
    about: str = "workflow, reference"
    task: str = "NULL::uuid"
    order: Sequence[str] = ("id",)
    failing: str = ""
    unknown: str = ""
    refused: str = ""
    leased: bool = False
    wait_s: float = conf.RETRY_WAIT_S
    wait_cap_s: float = conf.RETRY_WAIT_CAP_S
    max_age_s: float | None = None
    least_tries: int = 1

    @property
    def table(self) -> str:
        """The table's name."""
        return f"orchestration_{self.model.lower()}"

    @property
    def rows(self) -> QuerySet[Any]:
        """All rows."""
        return QuerySet(apps.get_model("orchestration", self.model, require_ready=False))

    # conditions

    @cached_property
    def open(self) -> Q:
        """Rows that are neither done nor set aside."""
        if not self.refused_at:
            return _is_null(self.due_at, False)
        return Q(**{f"{name}__isnull": True for name in (self.done_at, self.refused_at) if name})

    @cached_property
    def fresh(self) -> Q:
        """Open rows that have not failed."""
        return self.open & _is_null(self.due_at)

    @cached_property
    def timed(self) -> Q:
        """Open rows with a time at which they are due."""
        return self.open & _is_null(self.due_at, False)

    @cached_property
    def retries(self) -> Q:
        """Open rows whose time has come."""
        return self.open & Q(**{f"{self.due_at}__lte": NOW})

    @cached_property
    def due(self) -> Q:
        """Fresh rows, and those whose time has come."""
        when = _is_null(self.due_at) | Q(**{f"{self.due_at}__lte": NOW})
        return self.open & when

    @cached_property
    def set_aside(self) -> Q:
        """Rows that were refused, given up or closed: they are not due."""
        if self.refused_at:
            return _is_null(self.refused_at, False)
        return _is_null(self.due_at)

    @cached_property
    def closed(self) -> Q:
        """Rows that a person has closed."""
        return _is_null(self.closed_at, False)

    @cached_property
    def failed(self) -> Q:
        """Rows that failed or are set aside, and are not closed: the dead letters."""
        if not self.closed_at:
            return Q()
        why = self.set_aside | ~Q(problem="") if self.problem else ~Q(**{self.error: ""})
        return Q(why, **{f"{self.closed_at}__isnull": True})

    @cached_property
    def needs_person(self) -> Q:
        """Rows that wait for a person."""
        return self.failed & self.set_aside

    @cached_property
    def states(self) -> dict[str, Q]:
        """The condition of each state of a failed row."""
        if not self.closed_at:
            return {State.WAITING: self.open, State.REFUSED: self.needs_person}
        waiting = self.failed & _is_null(self.refused_at)
        problems = {State.WAITING: Problem.FAILING, State.UNKNOWN: Problem.UNKNOWN}
        waits = (
            {state.value: waiting & Q(**{self.problem: why}) for state, why in problems.items()}
            if self.problem
            else {State.WAITING.value: waiting}
        )
        return {**waits, State.REFUSED: self.needs_person, State.CLOSED: self.closed}

    def in_state(self, state: str) -> QuerySet[Any]:
        """Return the failed rows of a state; of any but closed without one."""
        return self.rows.filter(self.states.get(state, Q(id=None)) if state else self.failed)

    @property
    def state(self) -> Case:
        """The state of a failed row."""
        cases = [When(which, then=Value(name)) for name, which in self.states.items()]
        return Case(*cases, output_field=models.CharField())

    @property
    def in_order(self) -> tuple[OrderBy | str, ...]:
        """The order in which rows are due: fresh ones, then retries."""
        return F(self.due_at).asc(nulls_first=True), *self.order

    # the same in SQL

    @property
    def sql_order(self) -> str:
        """The order in which rows are due."""
        columns = (f"{name[1:]} DESC" if name[0] == "-" else name for name in self.order)
        return f"{self.due_at} NULLS FIRST, {', '.join(columns)}"

    def where(self, which: Q, alias: str = "m") -> str:
        """Return a condition as SQL, about the table by its alias."""
        return sql.condition(self.rows.model, which).replace(f'"{self.table}".', f"{alias}.")

    def first(self, columns: str, which: str, order: str) -> str:
        """Return SQL for columns of the first row `m` in the order of an index, which reads only that."""
        return f"(SELECT {columns} FROM {self.table} m WHERE {which} ORDER BY {order} LIMIT 1)"  # noqa: S608 - constants

    def count(self, which: Q, also: str = "true") -> str:
        """Return SQL for the number of rows of a condition, counted up to the parameter `limit`."""
        rows = f"SELECT FROM {self.table} m WHERE {self.where(which)} AND {also} LIMIT %(limit)s"
        return f"(SELECT count(*) FROM ({rows}) AS counted)"  # noqa: S608 - constants

    def is_overdue(self, also: str = "true") -> str:
        """Return SQL for whether fresh rows were overlooked, or retries are due; `also` is about `m`.

        Reads only the first row of each line: many may wait for their next try.
        """
        fresh = self.first("created_at", f"{self.where(self.fresh)} AND {also}", self.sql_order)
        timed = self.first(self.due_at, f"{self.where(self.timed)} AND {also}", self.sql_order)
        late = f"{fresh} < {CLOCK} - interval '{conf.RERING_AFTER_S} seconds'"
        return f"(({late}) IS TRUE OR ({timed} <= {CLOCK}) IS TRUE)"

    # changes

    def fail(
        self,
        ids: Collection[int],
        reason: str,
        *,
        refused: bool = False,
        problem: str = Problem.FAILING,
        tries: int | None = None,
        chance: Chance = random.random,
    ) -> list[Failure]:
        """Record a failure of open rows: they wait for their next try, longer each time, or are set aside.

        `tries` is the claim of a leased row: nothing changes if another process has claimed it since.
        """
        values = {"ids": list(ids), "reason": sql.storable(reason), "refused": refused, "tries": tries,
                  "problem": str(problem), "chance": chance()}  # fmt: skip
        return [Failure(*row) for row in sql.run(self._fail, values)]

    @cached_property
    def _fail(self) -> str:
        tries, count, guard = "least(tries + 1, 32767)", "tries + 1", ""
        if self.problem:
            tries = f"CASE WHEN problem IN ('', %(problem)s) THEN {tries} ELSE 1 END"
        tries = f"CASE WHEN %(refused)s THEN tries ELSE {tries} END"
        refused = "%(refused)s"
        if self.leased:
            tries, count, guard = "tries", "tries", " AND tries = %(tries)s"
        if self.max_age_s is not None:
            refused = f"""(%(refused)s OR {count} >= {self.least_tries}
        AND created_at < {CLOCK} - {self.max_age_s} * interval '1 second')"""
        return FAIL.format(
            table=self.table, tries=tries, error=self.error, due_at=self.due_at, refused=refused,
            problem=f", problem = CASE WHEN {refused} THEN '' ELSE %(problem)s END"
            if self.problem else "",
            idle="NULL" if self.closed_at else self.due_at,
            wait=f"least({self.wait_s} * power(2, least({count} - 1, 30)), {self.wait_cap_s})"
            " * (0.5 + %(chance)s / 2) * interval '1 second'",
            refused_at=self.refused_at, open=self.where(self.open, self.table) + guard,
            group=self.group, label=self.label, about=self.about,
        )  # fmt: skip

    def retry(self, also: str = "") -> str:
        """Return the statement that has set-aside and waiting rows retried now, with no failures."""
        empty = {name: "''" for name in (self.problem, self.error) if name}
        ends = {name: "NULL" for name in (self.refused_at, self.closed_at) if name}
        return self._change({**ends, self.due_at: "clock_timestamp()", "tries": "0", **empty}, also)

    def close(self) -> str:
        """Return the statement by which rows are never retried; what has no `closed_at` is deleted."""
        if not self.closed_at:
            return f"DELETE FROM {self.table} WHERE {self._acted}"  # noqa: S608 - constants
        refused_at = f"coalesce({self.refused_at}, clock_timestamp())"
        return self._change(
            {self.refused_at: refused_at, self.closed_at: "clock_timestamp()", self.due_at: "NULL"}
        )

    def _change(self, columns: dict[str, str], also: str = "") -> str:
        values = ", ".join(f"{name} = {value}" for name, value in columns.items())
        return f"UPDATE {self.table} SET {values} WHERE {also or 'true'} AND {self._acted}"  # noqa: S608 - constants

    @property
    def _acted(self) -> str:
        return f"""id = ANY(%(ids)s)
RETURNING id, {self.group} AS name, {self.label} AS target, {self.task} AS task"""
