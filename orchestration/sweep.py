"""The supervisor's sweep: finds what failed, expired or waits unserved; asks for recovery (P3, P10, P26).

It knows only the state store. It calls no agent and no workflow: it makes steps pending again, or
sets them to error, and rings doorbells; schedulers and agents carry it out.
"""

import logging
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import islice
from uuid import UUID

from django.db import transaction

from . import (
    alerts,
    batches,
    conf,
    crashpoints,
    dead_letters,
    due,
    incidents,
    leader,
    operations,
    policies,
    presence,
    rollups,
    sql,
    troubles,
    vigil,
)
from .failures import recover
from .leader import Leadership
from .losses import Losses
from .memory import Memory
from .transitions.clock_jump import move_times
from .transitions.gates import close_unasked, database_now
from .transitions.holds import hold_unserved, let_go
from .transitions.overdue import mark_overdue
from .transitions.recover import failed_tasks, wake
from .transitions.unmended import undo_unmended, unmended_tasks

logger = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Sweep:
    """What one sweep did."""

    retried: int = 0
    given_up: int = 0
    undone: int = 0
    let_be: int = 0
    released: int = 0
    woken: int = 0
    overdue: int = 0
    operated: int = 0
    sent_back: int = 0

    def __str__(self) -> str:
        done = ((name.replace("_", " "), count) for name, count in vars(self).items() if count)
        return ", ".join(f"{count} {name}" for name, count in done)


@dataclass(kw_only=True)
class Round:
    """One sweep under way; each of its duties is a method."""

    leadership: Leadership
    chance: Callable[[], float]
    losses: Losses = field(default_factory=Losses)
    done: Sweep = field(default_factory=Sweep)
    stuck: dict[UUID, Exception] = field(default_factory=dict)  # tasks with which a duty fails

    @cached_property
    def now(self) -> datetime:
        """The database's time as the lease was renewed: the clock may jump at any moment since."""
        return self.leadership.at or datetime.fromtimestamp(database_now(), UTC)

    def move_times(self) -> None:
        """Move what a jump of the clock has yet to move."""
        move_times()

    def find_losses(self) -> None:
        """Find what our own processes lost or kept unread."""
        self.losses.look(self.now)
        self.losses.find()

    def recover_what_failed(self) -> None:
        """Count each failed or expired step, and decide about it."""
        find = partial(failed_tasks, now=self.now, silent_since=self.losses.silent_since)
        self._deal(find, self._recover)
        crashpoints.reached("supervisor.mid_sweep", self.done.retried)

    def _recover(self, tasks: Collection[UUID]) -> int:
        found = recover(
            tasks, by=self.leadership.actor, now=self.now, losses=self.losses, chance=self.chance
        )
        self.done.retried += found.retried
        self.done.given_up += found.given_up
        self.done.undone += found.undone
        self.done.let_be += found.let_be
        return found.failed

    def undo_what_nobody_mended(self) -> None:
        """Have tasks undone of which a rejected step was not mended in time."""

        def act(tasks: Collection[UUID]) -> int:
            undone, later = undo_unmended(tasks, by=self.leadership.actor, now=self.now)
            self.done.undone += undone
            return undone + later

        self._deal(partial(unmended_tasks, now=self.now), act)

    def wake_what_waited(self) -> None:
        """End the wait of retries whose time has come."""
        self.done.woken += batches.all_of(partial(wake, conf.BATCH), conf.DUTY)

    def let_go_what_was_held(self) -> None:
        """Give the steps of ended holds back to the claim."""
        self.done.released += let_go()

    def tend_gates(self) -> None:
        """Close breakers that wait for nothing, and hold the agents that no worker serves."""
        close_unasked()
        hold_unserved()

    def warn_of_late_tasks(self) -> None:
        """Mark tasks past their time, and tell people."""
        self.done.overdue += batches.all_of(self._warn_of_a_batch, conf.DUTY)
        alerts.close_overdue()

    @transaction.atomic
    def _warn_of_a_batch(self) -> int:
        late = mark_overdue(conf.BATCH, now=self.now)
        alerts.overdue(late)
        return len(late)

    def advance_operations(self) -> None:
        """Take bulk operations on."""
        self.done.operated = operations.advance(self.leadership, reach=2 * policies.interval())

    def fold_incidents(self) -> None:
        """Bring the incidents up to date."""
        incidents.fold(self.leadership.actor)

    def keep_books(self) -> None:
        """Keep rows for each agent, forget dead workers and old dry runs, roll up what ended."""
        policies.ensure_agents()
        presence.forget_the_dead()
        operations.forget_drafts()
        rollups.keep(self.leadership)

    def send_dead_letters_back(self) -> None:
        """Return messages that failed to their inboxes, and close the alerts about others."""
        send_back = partial(dead_letters.send_back, conf.BATCH)
        self.done.sent_back += batches.all_of(send_back, conf.DUTY)

    def ring_doorbells(self) -> None:
        """Ring for whatever is due and nobody is serving."""
        due.ring()

    def _deal(
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


Duty = Callable[[Round], None]

# Done if anything is due (`due.ANYTHING`); what one of them does may be what the next looks for.
DUTIES: tuple[Duty, ...] = (
    Round.move_times,
    Round.find_losses,
    Round.recover_what_failed,
    Round.undo_what_nobody_mended,
    Round.wake_what_waited,
    Round.let_go_what_was_held,
    Round.tend_gates,
    Round.advance_operations,
    Round.fold_incidents,
    Round.send_dead_letters_back,
    Round.ring_doorbells,
)
# Done every few seconds, due or not: some incidents change by time alone, for example.
CHORES: tuple[Duty, ...] = (
    Round.warn_of_late_tasks,
    Round.fold_incidents,
    Round.keep_books,
    Round.send_dead_letters_back,
    Round.ring_doorbells,
)


LOOKING = "see what is due"


def sweep(
    leadership: Leadership,
    chance: Callable[[], float] = random.random,
    memory: Memory | None = None,
    progress: Callable[[], None] = lambda: None,
) -> Sweep:
    """Look at every step and task once, in batches, oldest first; then at the machinery.

    A task with which a duty fails keeps no other waiting, nor does a duty that fails: both are told
    as alerts, and tried again by the next sweep. A duty begins nothing more once it has taken
    `conf.DUTY` seconds. `progress` is called after each duty. Raises an ExceptionGroup of what duties
    raised.
    """
    memory = memory or Memory()
    turn = Round(leadership=leadership, chance=chance, losses=memory.losses)
    failed: dict[str, Exception] = {}
    chores = memory.wants_chores()
    duties = [*(DUTIES if _busy(failed) else ()), *(CHORES if chores else ())]
    for duty in dict.fromkeys(duties):
        memory.failing.pop(_named(duty), None)
        with _apart(_named(duty), failed):
            duty(turn)
        progress()
    memory.failing.pop(LOOKING, None)
    memory.failing.update(failed)
    if chores or failed or turn.stuck:
        also = [*troubles.failing(memory.failing), *troubles.stuck(turn.stuck)]
        with _apart("watch the machinery", failed):
            vigil.look(memory.absent, memory.blocking, also=also, jump=leadership.jump)
    for task, why in islice(turn.stuck.items(), 1):  # the alert says how many there are
        logger.error("task %s cannot be recovered", task, exc_info=why)
    if chores or str(turn.done):
        leader.note_sweep(leadership, str(turn.done))
    if failed:
        raise ExceptionGroup("duties of the sweep failed", list(failed.values()))
    return turn.done


def _busy(failed: dict[str, Exception]) -> bool:
    """Return whether anything is due; if that cannot be asked, each duty looks by itself."""
    with _apart(LOOKING, failed):
        if not due.anything():
            return False
    return True


@contextmanager
def _apart(name: str, failed: dict[str, Exception]) -> Iterator[None]:
    """Note what the block raises: whatever it is, the rest of the sweep is to be done."""
    try:
        yield
    except Exception as error:
        if sql.is_unavailable(error):
            raise
        failed[name] = error


def _named(duty: Duty) -> str:
    return duty.__name__.replace("_", " ")
