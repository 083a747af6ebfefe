"""The housekeeper's sweep: its duties. One of several housekeepers leads."""

from functools import cache, partial

from django.db import transaction
from django.utils.module_loading import autodiscover_modules

from .. import conf, registry
from ..alerting import alerts
from ..cluster import heartbeat
from ..cluster.duty import Done, Duty, Sweep
from ..cluster.leader_election import Leadership
from ..cluster.leader_memory import Memory
from ..dead_letters import capture
from ..incidents.aggregation import AGGREGATE_INCIDENTS
from ..models.inbox import INBOX_LETTERS
from ..monitoring.monitors import MONITOR
from ..operations.runner import ADVANCE, PRUNE_DRAFTS
from ..schedules.submitting import SUBMIT_SCHEDULED
from ..supervision import duties
from ..supervision.duties import Progress
from ..transitions import away
from ..transitions.gates import UNASKED, close_unasked
from ..transitions.holds import SERVICE_CHANGED, hold_unserved, unpark
from ..transitions.overdue import mark_overdue
from . import agent_rows
from .doorbells import RING_DOORBELLS
from .lost_attempts import EXPIRE_LOST_ATTEMPTS


def _mark_overdue_tasks(sweep: Sweep) -> int:
    """Mark overdue tasks, and raise and close the alerts about them."""
    count = sweep.in_batches(partial(_mark_overdue_batch, sweep))
    alerts.close_overdue()
    return count


@transaction.atomic
def _mark_overdue_batch(sweep: Sweep) -> int:
    overdue = mark_overdue(conf.BATCH_SIZE, now=sweep.now)
    alerts.overdue(overdue)
    return len(overdue)


RELEASE_HELD_STEPS = Duty(
    name="release held steps",
    run=lambda _: unpark(),
    counted="released",
    # by hold_uncleared
    due="EXISTS (SELECT FROM orchestration_hold WHERE until IS NOT NULL AND NOT cleared)",
)
CLOSE_IDLE_BREAKERS = Duty(
    name="close idle breakers", run=lambda _: close_unasked(), due=f"EXISTS ({UNASKED})"
)
HOLD_UNSERVED_AGENTS = Duty(
    name="hold unserved agents", run=lambda _: hold_unserved(), due=f"EXISTS ({SERVICE_CHANGED})"
)
GIVE_UP_AWAY = Duty(
    name="give up steps whose service is away",
    run=lambda sweep: sweep.in_batches_of_tasks(
        away.waiting_in_vain, partial(away.give_up, by=sweep.leadership.actor)
    ),
    counted="given up",
    due=away.ANY,
    parameters=away.declared,
    every=conf.DUTY_INTERVAL_S,
)
RETURN_DEAD_LETTERS = Duty(
    name="return dead letters",
    run=lambda sweep: sweep.in_batches(partial(capture.return_due, conf.BATCH_SIZE)),
    counted="sent back",
    # by dead_letter_due
    due=f"EXISTS (SELECT FROM orchestration_deadletter m WHERE {INBOX_LETTERS.where(INBOX_LETTERS.retries)})",
    every=conf.DUTY_INTERVAL_S,
)
MARK_OVERDUE_TASKS = Duty(
    name="mark overdue tasks",
    run=_mark_overdue_tasks,
    counted="overdue",
    every=conf.DUTY_INTERVAL_S,
)
PRUNE_WORKERS = Duty(
    name="prune dead workers",
    run=lambda _: heartbeat.delete_dead_workers(),
    every=conf.DUTY_INTERVAL_S,
)

# The order matters: one duty may create work for the next.
DUTIES = (
    EXPIRE_LOST_ATTEMPTS,
    RELEASE_HELD_STEPS,
    CLOSE_IDLE_BREAKERS,
    HOLD_UNSERVED_AGENTS,
    GIVE_UP_AWAY,
    SUBMIT_SCHEDULED,
    ADVANCE,
    AGGREGATE_INCIDENTS,
    RETURN_DEAD_LETTERS,
    RING_DOORBELLS,
    MARK_OVERDUE_TASKS,
    agent_rows.ADD_ROWS,
    PRUNE_WORKERS,
    PRUNE_DRAFTS,
    MONITOR,
)


@cache
def _load_duties() -> None:
    autodiscover_modules("duties")


def all_duties() -> tuple[Duty, ...]:
    """Return the engine's duties, and those that applications register in a module `duties`."""
    _load_duties()
    return (*DUTIES, *registry.duties.values())


def sweep(
    leadership: Leadership, memory: Memory | None = None, progress: Progress = lambda: None
) -> Done:
    """Run one sweep of the housekeeper."""
    run = Sweep(leadership=leadership, memory=memory or Memory())
    return duties.run(run, all_duties(), progress)
