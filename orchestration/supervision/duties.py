"""Run the duties of a sweep, isolated from one another."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any
from uuid import UUID

from .. import conf
from ..cluster import leader_election
from ..cluster.leader_election import Leadership
from ..database import batches, clock, sql
from ..tracing.subject import about_task
from . import conditions
from .memory import Memory

logger = logging.getLogger(__name__)
LOOKING = "see what is due"
Progress = Callable[[], None]


@dataclass(kw_only=True)
class SweepSummary:
    """The result of one sweep: a count for each kind of action."""

    def __str__(self) -> str:
        done = ((name.replace("_", " "), count) for name, count in vars(self).items() if count)
        return ", ".join(f"{count} {name}" for name, count in done)


@dataclass(kw_only=True)
class SweepRun:
    """One sweep under way; each of its duties is a method of a subclass."""

    leadership: Leadership
    memory: Memory
    stuck: dict[UUID, Exception] = field(default_factory=dict)  # tasks that make a duty fail
    failed: dict[str, Exception] = field(default_factory=dict)  # duties, by name

    @cached_property
    def now(self) -> datetime:
        """The database's time when the lease was renewed: the clock may have jumped since."""
        return self.leadership.at or clock.database_now()

    def deal(
        self,
        find: Callable[[int, Collection[UUID]], list[UUID]],
        deal: Callable[[Sequence[UUID]], int],
    ) -> int:
        """Handle all tasks found; return how many. Tasks that fail are added to `stuck`."""

        def find_others(limit: int, excluded: Collection[UUID]) -> list[UUID]:
            return find(limit, self.stuck.keys() | excluded)

        done, failing = batches.all_found(find_others, deal, conf.DUTY_BUDGET_S)
        self.stuck |= failing
        return done

    @contextmanager
    def apart(self, name: str) -> Iterator[None]:
        """Record an exception of the block as the duty's failure, so that the sweep continues."""
        try:
            yield
        except Exception as error:
            if sql.is_unavailable(error):
                raise
            self.failed[name] = error


Duty = Callable[[Any], None]


def run(
    sweep: SweepRun,
    summary: SweepSummary,
    *,
    anything: Callable[[], bool],
    duties: Sequence[Duty],
    chores: Sequence[Duty],
    progress: Progress,
) -> None:
    """Run the `duties` if `anything` is due, and every few seconds the `chores`.

    A failing task or duty never blocks the others; each raises an alert and is retried by the next sweep.
    `progress` is called after each duty. Raises an ExceptionGroup of the duties' exceptions.
    """
    memory = sweep.memory
    is_time = memory.wants_chores()
    wanted = [*(duties if _busy(sweep, anything) else ()), *(chores if is_time else ())]
    for duty in dict.fromkeys(wanted):
        memory.failing.pop(_named(duty), None)
        with sweep.apart(_named(duty)):
            duty(sweep)
        progress()
    if LOOKING not in sweep.failed:
        memory.failing.pop(LOOKING, None)
    memory.failing.update(sweep.failed)
    if is_time or sweep.failed or sweep.stuck:
        with sweep.apart("raise its alerts"):
            _raise(sweep, memory.failing)
    for task, why in islice(sweep.stuck.items(), 1):  # the alert has their number
        logger.error("task %s cannot be recovered", task, exc_info=why, extra=about_task(task))
    if is_time or str(summary):
        leader_election.note_sweep(sweep.leadership, str(summary))
    if sweep.failed:
        raise ExceptionGroup("duties of the sweep failed", list(sweep.failed.values()))


def _raise(sweep: SweepRun, failing: Mapping[str, Exception]) -> None:
    """Open the alerts about this sweep's failures, and close the others of its kind."""
    name = sweep.leadership.name
    found = [*conditions.failing(name, failing), *conditions.stuck(name, sweep.stuck)]
    conditions.keep(f"{conditions.PREFIX}{name}/", found)


def _busy(sweep: SweepRun, anything: Callable[[], bool]) -> bool:
    """Return whether anything is due; True if the query fails, as each duty then looks itself."""
    with sweep.apart(LOOKING):
        if not anything():
            return False
    return True


def _named(duty: Duty) -> str:
    return str(duty.__name__).replace("_", " ")
