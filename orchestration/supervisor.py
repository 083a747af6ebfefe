"""The supervisor: finds failed and expired steps, and starts their recovery (P3, P4, P10, P26).

It reads only the state store, and loads no workflow and no agent. It makes steps pending again, sets them
to error, or requests the undo of their tasks, and rings doorbells; schedulers and agents do the rest. All
other periodic work is the housekeeper's. One of several supervisors leads.
"""

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from . import conf
from .cluster import crash_points
from .cluster.leader_election import Leadership
from .database import batches
from .supervision import due, duties
from .supervision.duties import Duty, Progress, SweepSummary
from .supervision.failures import recover
from .supervision.memory import Memory
from .transitions.clock_jump import move_times
from .transitions.failures import failed_tasks, wake
from .transitions.unmended import request_undo_of_unmended, unmended_tasks


@dataclass(kw_only=True)
class RecoverySummary(SweepSummary):
    """The result of one sweep of the supervisor."""

    retried: int = 0
    given_up: int = 0
    to_undo: int = 0
    cancelled: int = 0
    retries_due: int = 0


@dataclass(kw_only=True)
class SupervisorSweep(duties.SweepRun):
    """One sweep of the supervisor; each of its duties is a method."""

    chance: Callable[[], float]
    done: RecoverySummary = field(default_factory=RecoverySummary)

    def move_times(self) -> None:
        """Move the times that are left to move after a jump of the clock."""
        move_times()

    def look_for_losses(self) -> None:
        """Find out whether the engine itself lost messages or left replies unread."""
        self.memory.losses.look(self.now)

    def recover_what_failed(self) -> None:
        """Count and decide each failed or expired step."""
        find = partial(failed_tasks, now=self.now, silent_since=self.memory.losses.silent_since)
        self.deal(find, self._recover)
        crash_points.reached("supervisor.mid_sweep", self.done.retried)

    def _recover(self, tasks: Collection[UUID]) -> int:
        recovered = recover(
            tasks,
            by=self.leadership.actor,
            now=self.now,
            losses=self.memory.losses,
            chance=self.chance,
        )
        self.done.retried += recovered.retried
        self.done.given_up += recovered.given_up
        self.done.to_undo += recovered.to_undo
        self.done.cancelled += recovered.cancelled
        return recovered.failed

    def ask_to_undo_what_was_not_mended(self) -> None:
        """Request the undo of tasks with a rejected step that was not corrected in time."""

        def act(tasks: Collection[UUID]) -> int:
            requested, later = request_undo_of_unmended(
                tasks, by=self.leadership.actor, now=self.now
            )
            self.done.to_undo += requested
            return requested + later

        self.deal(partial(unmended_tasks, now=self.now), act)

    def wake_what_waited(self) -> None:
        """Make retries claimable when their wait is over."""
        self.done.retries_due += batches.all_of(partial(wake, conf.BATCH_SIZE), conf.DUTY_BUDGET_S)

    def ring_doorbells(self) -> None:
        """Ring for work that is due and not served."""
        due.ring()


# Run if anything is due (`due.ANYTHING`). The order matters: one duty may create work for the next.
DUTIES: tuple[Duty, ...] = (
    SupervisorSweep.move_times,
    SupervisorSweep.look_for_losses,
    SupervisorSweep.recover_what_failed,
    SupervisorSweep.ask_to_undo_what_was_not_mended,
    SupervisorSweep.wake_what_waited,
    SupervisorSweep.ring_doorbells,
)
CHORES: tuple[Duty, ...] = (SupervisorSweep.ring_doorbells,)  # every few seconds, due or not


def sweep(
    leadership: Leadership,
    memory: Memory | None = None,
    progress: Progress = lambda: None,
    chance: Callable[[], float] = random.random,
) -> RecoverySummary:
    """Run one sweep over all steps, in batches, oldest first; see `duties.run`."""
    run = SupervisorSweep(leadership=leadership, memory=memory or Memory(), chance=chance)
    duties.run(
        run, run.done, anything=due.anything, duties=DUTIES, chores=CHORES, progress=progress
    )
    return run.done
