"""The housekeeper's sweep: its duties and chores. One of several housekeepers leads."""

from dataclasses import dataclass, field
from functools import partial

from django.conf import settings
from django.db import transaction

from .. import conf, policies
from ..alerting import alerts
from ..cluster import heartbeat
from ..cluster.leader_election import Leadership
from ..database import batches
from ..dead_letters import capture
from ..incidents import aggregation
from ..monitoring import monitors
from ..operations import runner
from ..retention import records, removal
from ..statistics import rollups
from ..supervision import duties
from ..supervision.duties import Duty, Progress, SweepSummary
from ..supervision.memory import Memory
from ..transitions.gates import close_unasked
from ..transitions.holds import hold_unserved, unpark
from ..transitions.overdue import mark_overdue
from . import agent_rows, due, lost_attempts


@dataclass(kw_only=True)
class HousekeepingSummary(SweepSummary):
    """The result of one sweep of the housekeeper."""

    released: int = 0
    overdue: int = 0
    acted_on_in_bulk: int = 0
    sent_back: int = 0
    removed: int = 0


@dataclass(kw_only=True)
class HousekeeperSweep(duties.SweepRun):
    """One sweep of the housekeeper; each of its duties is a method."""

    done: HousekeepingSummary = field(default_factory=HousekeepingSummary)

    def expire_what_was_lost(self) -> None:
        """Expire the attempts of dead workers, so that the supervisor finds them."""
        lost_attempts.expire(self.memory.silent)

    def release_held_steps(self) -> None:
        """Make the steps of ended holds claimable again."""
        self.done.released += unpark()

    def tend_gates(self) -> None:
        """Close breakers without waiting steps, and hold the agents that no worker serves."""
        close_unasked()
        hold_unserved()

    def warn_of_late_tasks(self) -> None:
        """Mark overdue tasks, and raise alerts."""
        self.done.overdue += batches.all_of(self._warn_of_a_batch, conf.DUTY_BUDGET_S)
        alerts.close_overdue()

    @transaction.atomic
    def _warn_of_a_batch(self) -> int:
        late = mark_overdue(conf.BATCH_SIZE, now=self.now)
        alerts.overdue(late)
        return len(late)

    def advance_operations(self) -> None:
        """Advance bulk operations."""
        self.done.acted_on_in_bulk = runner.advance(self.leadership, reach=2 * policies.interval())

    def fold_incidents(self) -> None:
        """Bring the incidents up to date."""
        aggregation.aggregate(self.leadership.actor)

    def prune_and_roll_up(self) -> None:
        """Add rows of new agents, delete dead workers and old dry runs, and roll up statistics."""
        agent_rows.ensure_agents()
        agent_rows.ensure_workflows()
        heartbeat.delete_dead_workers()
        runner.prune_drafts()
        rollups.update(self.leadership)

    def remove_old_tasks(self) -> None:
        """Remove tasks that ended long ago; with ARCHIVE_DIR, `manage.py archive` does."""
        if not settings.ARCHIVE_DIR:
            self.done.removed += removal.remove_due(conf.REMOVAL_BUDGET_S)

    def remove_old_records(self) -> None:
        """Remove old rows of other tables."""
        if self.memory.wants_records():
            records.remove_old()

    def send_dead_letters_back(self) -> None:
        """Return due dead letters to their inboxes, and close the alerts of settled ones."""
        return_due = partial(capture.return_due, conf.BATCH_SIZE)
        self.done.sent_back += batches.all_of(return_due, conf.DUTY_BUDGET_S)

    def watch_the_machinery(self) -> None:
        """Raise and close the alerts about the machinery."""
        memory = self.memory
        monitors.look(
            memory.absent,
            memory.blocking,
            late=memory.late_audits,
            jump=self.leadership.jump,
            now=self.now,
        )

    def ring_doorbells(self) -> None:
        """Ring for notifications, status messages and audits that are due and not served."""
        due.ring()


# Run if anything is due (`due.ANYTHING`). The order matters: one duty may create work for the next.
DUTIES: tuple[Duty, ...] = (
    HousekeeperSweep.expire_what_was_lost,
    HousekeeperSweep.release_held_steps,
    HousekeeperSweep.tend_gates,
    HousekeeperSweep.advance_operations,
    HousekeeperSweep.fold_incidents,
    HousekeeperSweep.send_dead_letters_back,
    HousekeeperSweep.ring_doorbells,
    HousekeeperSweep.remove_old_tasks,
)
# Run every few seconds, due or not: for example, some incidents change by time alone.
CHORES: tuple[Duty, ...] = (
    HousekeeperSweep.warn_of_late_tasks,
    HousekeeperSweep.fold_incidents,
    HousekeeperSweep.prune_and_roll_up,
    HousekeeperSweep.send_dead_letters_back,
    HousekeeperSweep.ring_doorbells,
    HousekeeperSweep.watch_the_machinery,
    HousekeeperSweep.remove_old_tasks,
    HousekeeperSweep.remove_old_records,
)


def sweep(
    leadership: Leadership, memory: Memory | None = None, progress: Progress = lambda: None
) -> HousekeepingSummary:
    """Run one sweep of the housekeeper; see `duties.run`."""
    run = HousekeeperSweep(leadership=leadership, memory=memory or Memory())
    duties.run(
        run, run.done, anything=due.anything, duties=DUTIES, chores=CHORES, progress=progress
    )
    return run.done
