"""One sweep of the housekeeper: what goes on beside the tasks. Of several housekeepers one leads."""

from dataclasses import dataclass, field
from functools import partial

from django.db import transaction

from .. import (
    alerts,
    batches,
    conf,
    dead_letters,
    incidents,
    operations,
    policies,
    presence,
    rollups,
    vigil,
)
from ..leader import Leadership
from ..leading import duties
from ..leading.duties import Done, Duty, Progress
from ..leading.memory import Memory
from ..transitions.gates import close_unasked
from ..transitions.holds import hold_unserved, let_go
from ..transitions.overdue import mark_overdue
from . import due, lost, rows


@dataclass(kw_only=True)
class Kept(Done):
    """What one sweep of the housekeeper did."""

    released: int = 0
    overdue: int = 0
    operated: int = 0
    sent_back: int = 0


@dataclass(kw_only=True)
class Round(duties.Round):
    """One sweep under way; each of its duties is a method."""

    done: Kept = field(default_factory=Kept)

    def expire_what_was_lost(self) -> None:
        """Have the attempts expire that died with an agent's worker: the supervisor finds them then."""
        lost.expire(self.memory.silent)

    def let_go_what_was_held(self) -> None:
        """Give the steps of ended holds back to the claim."""
        self.done.released += let_go()

    def tend_gates(self) -> None:
        """Close breakers that wait for nothing, and hold the agents that no worker serves."""
        close_unasked()
        hold_unserved()

    def warn_of_late_tasks(self) -> None:
        """Mark tasks past their time, and alert people."""
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
        rows.ensure_agents()
        presence.forget_the_dead()
        operations.forget_drafts()
        rollups.keep(self.leadership)

    def send_dead_letters_back(self) -> None:
        """Return messages that failed to their inboxes, and close the alerts about others."""
        send_back = partial(dead_letters.send_back, conf.BATCH)
        self.done.sent_back += batches.all_of(send_back, conf.DUTY)

    def watch_the_machinery(self) -> None:
        """Alert people of what lasts too long."""
        memory = self.memory
        vigil.look(memory.absent, memory.blocking, jump=self.leadership.jump)

    def ring_doorbells(self) -> None:
        """Ring for notices, status messages and audits that are due and not served."""
        due.ring()


# Done if anything is due (`due.ANYTHING`); what one of them does may be what the next looks for.
DUTIES: tuple[Duty, ...] = (
    Round.expire_what_was_lost,
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
    Round.watch_the_machinery,
)


def sweep(
    leadership: Leadership, memory: Memory | None = None, progress: Progress = lambda: None
) -> Kept:
    """Do what is due beside the tasks; see `duties.run`."""
    turn = Round(leadership=leadership, memory=memory or Memory())
    duties.run(
        turn, turn.done, anything=due.anything, duties=DUTIES, chores=CHORES, progress=progress
    )
    return turn.done
