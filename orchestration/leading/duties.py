"""Duties of a sweep, each apart from the others: one that fails keeps none waiting."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from typing import Any
from uuid import UUID

from .. import batches, conf, leader, sql, troubles
from ..leader import Leadership
from ..transitions.gates import database_now
from .memory import Memory

logger = logging.getLogger(__name__)
LOOKING = "see what is due"
Progress = Callable[[], None]


@dataclass(kw_only=True)
class Done:
    """What one sweep did: a count for each kind of act."""

    def __str__(self) -> str:
        done = ((name.replace("_", " "), count) for name, count in vars(self).items() if count)
        return ", ".join(f"{count} {name}" for name, count in done)


@dataclass(kw_only=True)
class Round:
    """One sweep under way; each of its duties is a method of a subclass."""

    leadership: Leadership
    memory: Memory
    stuck: dict[UUID, Exception] = field(default_factory=dict)  # tasks with which a duty fails
    failed: dict[str, Exception] = field(default_factory=dict)  # duties

    @cached_property
    def now(self) -> datetime:
        """The database's time as the lease was renewed: the clock may jump at any moment since."""
        return self.leadership.at or datetime.fromtimestamp(database_now(), UTC)

    def deal(
        self,
        find: Callable[[int, Collection[UUID]], list[UUID]],
        deal: Callable[[Sequence[UUID]], int],
    ) -> int:
        """Deal with all tasks that are found; return with how many. Those that fail are stuck."""

        def find_others(limit: int, beyond: Collection[UUID]) -> list[UUID]:
            return find(limit, self.stuck.keys() | beyond)

        done, failing = batches.all_found(find_others, deal, conf.DUTY)
        self.stuck |= failing
        return done

    @contextmanager
    def apart(self, name: str) -> Iterator[None]:
        """Note what the block raises: whatever it is, the rest of the sweep is to be done."""
        try:
            yield
        except Exception as error:
            if sql.is_unavailable(error):
                raise
            self.failed[name] = error


Duty = Callable[[Any], None]


def run(
    turn: Round,
    done: Done,
    *,
    anything: Callable[[], bool],
    duties: Sequence[Duty],
    chores: Sequence[Duty],
    progress: Progress,
) -> None:
    """Do the `duties` if `anything` is due, and every few seconds the `chores`, due or not.

    A task with which a duty fails keeps no other waiting, nor does a duty that fails: both are
    alerts, and tried again by the next sweep. `progress` is called after each duty. Raises an
    ExceptionGroup of what duties raised.
    """
    memory = turn.memory
    is_time = memory.wants_chores()
    wanted = [*(duties if _busy(turn, anything) else ()), *(chores if is_time else ())]
    for duty in dict.fromkeys(wanted):
        memory.failing.pop(_named(duty), None)
        with turn.apart(_named(duty)):
            duty(turn)
        progress()
    if LOOKING not in turn.failed:
        memory.failing.pop(LOOKING, None)
    memory.failing.update(turn.failed)
    if is_time or turn.failed or turn.stuck:
        with turn.apart("raise its alerts"):
            _raise(turn, memory.failing)
    for task, why in islice(turn.stuck.items(), 1):  # the alert says how many there are
        logger.error("task %s cannot be recovered", task, exc_info=why)
    if is_time or str(done):
        leader.note_sweep(turn.leadership, str(done))
    if turn.failed:
        raise ExceptionGroup("duties of the sweep failed", list(turn.failed.values()))


def _raise(turn: Round, failing: Mapping[str, Exception]) -> None:
    """Have alerts about what this sweep could not do, and no others of its kind, open."""
    name = turn.leadership.name
    found = [*troubles.failing(name, failing), *troubles.stuck(name, turn.stuck)]
    troubles.keep(f"{troubles.PREFIX}{name}/", found)


def _busy(turn: Round, anything: Callable[[], bool]) -> bool:
    """Return whether anything is due; if that cannot be asked, each duty looks by itself."""
    with turn.apart(LOOKING):
        if not anything():
            return False
    return True


def _named(duty: Duty) -> str:
    return str(duty.__name__).replace("_", " ")
