"""The supervisor: finds what failed or expired, and asks for recovery (P3, P4, P10, P26).

It knows the state store alone, and loads no workflow and no agent. It makes steps pending again, sets
them to error, or asks that their tasks be undone, and rings doorbells: schedulers and agents carry it
out. All that is no recovery is the housekeeper's. Of several supervisors one leads.
"""

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from . import batches, conf, crashpoints, due
from .failures import recover
from .leader import Leadership
from .leading import duties
from .leading.duties import Done, Duty, Progress
from .leading.memory import Memory
from .transitions.clock_jump import move_times
from .transitions.recover import failed_tasks, wake
from .transitions.unmended import request_undo_of_unmended, unmended_tasks


@dataclass(kw_only=True)
class Recovery(Done):
    """What one sweep of the supervisor did."""

    retried: int = 0
    given_up: int = 0
    to_undo: int = 0
    cancelled: int = 0
    woken: int = 0


@dataclass(kw_only=True)
class Round(duties.Round):
    """One sweep under way; each of its duties is a method."""

    chance: Callable[[], float]
    done: Recovery = field(default_factory=Recovery)

    def move_times(self) -> None:
        """Move what a jump of the clock has yet to move."""
        move_times()

    def look_for_losses(self) -> None:
        """Find out whether silence may be due to what our own processes lost or kept unread."""
        self.memory.losses.look(self.now)

    def recover_what_failed(self) -> None:
        """Count each failed or expired step, and decide about it."""
        find = partial(failed_tasks, now=self.now, silent_since=self.memory.losses.silent_since)
        self.deal(find, self._recover)
        crashpoints.reached("supervisor.mid_sweep", self.done.retried)

    def _recover(self, tasks: Collection[UUID]) -> int:
        found = recover(
            tasks,
            by=self.leadership.actor,
            now=self.now,
            losses=self.memory.losses,
            chance=self.chance,
        )
        self.done.retried += found.retried
        self.done.given_up += found.given_up
        self.done.to_undo += found.to_undo
        self.done.cancelled += found.cancelled
        return found.failed

    def ask_to_undo_what_was_not_mended(self) -> None:
        """Ask for the undo of tasks with a rejected step that was not mended in time."""

        def act(tasks: Collection[UUID]) -> int:
            requested, later = request_undo_of_unmended(
                tasks, by=self.leadership.actor, now=self.now
            )
            self.done.to_undo += requested
            return requested + later

        self.deal(partial(unmended_tasks, now=self.now), act)

    def wake_what_waited(self) -> None:
        """End the wait of retries whose time has come."""
        self.done.woken += batches.all_of(partial(wake, conf.BATCH), conf.DUTY)

    def ring_doorbells(self) -> None:
        """Ring for whatever is due and not served."""
        due.ring()


# Done if anything is due (`due.ANYTHING`); what one of them does may be what the next looks for.
DUTIES: tuple[Duty, ...] = (
    Round.move_times,
    Round.look_for_losses,
    Round.recover_what_failed,
    Round.ask_to_undo_what_was_not_mended,
    Round.wake_what_waited,
    Round.ring_doorbells,
)
CHORES: tuple[Duty, ...] = (Round.ring_doorbells,)  # every few seconds, due or not


def sweep(
    leadership: Leadership,
    memory: Memory | None = None,
    progress: Progress = lambda: None,
    chance: Callable[[], float] = random.random,
) -> Recovery:
    """Look at every step once, in batches, oldest first; see `duties.run`."""
    turn = Round(leadership=leadership, memory=memory or Memory(), chance=chance)
    duties.run(
        turn, turn.done, anything=due.anything, duties=DUTIES, chores=CHORES, progress=progress
    )
    return turn.done
