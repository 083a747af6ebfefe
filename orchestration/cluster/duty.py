"""A duty is periodic work of a leader, declared as one object; a sweep runs the duties that are due.

A new duty of the engine is defined in the module of its subject, and listed once: in `supervisor.DUTIES` if
it recovers steps, else in `housekeeping.housekeeper.DUTIES`.
"""

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from .. import conf
from ..database import batches, clock, sql
from .leader_election import Leadership
from .leader_memory import Memory

# The present in a condition. Evaluated once: a volatile value cannot be searched in an index.
NOW = "(SELECT clock_timestamp())"


@dataclass(frozen=True, kw_only=True)
class Duty:
    """Periodic work of a leader: `run` does it, within `budget` seconds of each sweep.

    `due` is an SQL condition that is true if there may be work. Each sweep asks for the conditions of all
    duties in one statement, which is planned once, by indexes only: let a condition read no more than the
    first row of an index. The duties whose condition is true run, in the order of their list; as one may
    create work for the next, the others are asked about once more. A condition may name `parameters`; a
    name has one value for all duties.

    A duty with `every` runs also each time that number of seconds has passed. If `run` returns how much it
    did, `counted` is what the log calls that.

    >>> drafts = Duty(
    ...     name="delete expired drafts",  # an alert says: "The housekeeper fails to ..."
    ...     run=lambda sweep: sweep.in_batches(delete_expired_drafts),
    ...     counted="expired drafts",
    ...     due=f"EXISTS (SELECT FROM texts_draft WHERE expires_at <= {NOW})",
    ...     every=3600.0,
    ... )
    """

    name: str
    run: Callable[["Sweep"], Any]
    counted: str = ""
    due: str = ""
    every: float | None = None
    budget: Callable[[], float] = lambda: conf.DUTY_BUDGET_S
    parameters: Callable[[], Mapping[str, Any]] = dict


class Done(Counter[str]):
    """What a sweep has done: a count for each kind of action."""

    def __str__(self) -> str:
        return ", ".join(f"{count} {action}" for action, count in self.items() if count)


@dataclass(kw_only=True)
class Sweep:
    """One sweep under way, as its duties see it.

    >>> def tidy(sweep: Sweep) -> int:
    ...     return sweep.in_batches(delete_some_drafts)  # again and again, until it deletes few
    >>> register_duty(Duty(name="delete drafts", run=tidy, every=3600.0))
    """

    leadership: Leadership
    memory: Memory = field(default_factory=Memory)
    chance: Callable[[], float] = random.random
    done: Done = field(default_factory=Done)
    budget: float = 0.0  # seconds that the present duty may take
    stuck: dict[UUID, Exception] = field(default_factory=dict)  # tasks that make a duty fail
    failed: dict[str, Exception] = field(default_factory=dict)  # duties, by name

    @cached_property
    def now(self) -> datetime:
        """The database's time when the lease was renewed: the clock may have jumped since."""
        return self.leadership.at or clock.database_now()

    def perform(self, duty: Duty) -> None:
        """Run a duty."""
        self.budget = duty.budget()
        result = duty.run(self)
        if duty.counted:
            self.done[duty.counted] += result

    def in_batches(self, batch: Callable[[], int]) -> int:
        """Call `batch` until it handles fewer than `conf.BATCH_SIZE`, within the budget; return the sum."""
        return batches.all_of(batch, self.budget)

    def in_batches_of_tasks(
        self,
        find: Callable[[int, Collection[UUID]], list[UUID]],
        handle: Callable[[Sequence[UUID]], int],
    ) -> int:
        """Handle all tasks that `find` returns, within the budget; return how many.

        Tasks that fail are added to `stuck`, and the others are handled.
        """

        def find_others(limit: int, excluded: Collection[UUID]) -> list[UUID]:
            return find(limit, self.stuck.keys() | excluded)

        count, failing = batches.all_found(find_others, handle, self.budget)
        self.stuck |= failing
        return count

    @contextmanager
    def isolated(self, name: str) -> Iterator[None]:
        """Record an exception of the block as the failure of a duty, so that the sweep continues."""
        try:
            yield
        except Exception as error:
            if sql.is_unavailable(error):
                raise
            self.failed[name] = error
