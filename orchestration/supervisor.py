"""The supervisor: finds failed and expired steps, and starts their recovery (P3, P4, P10, P26).

It reads only the state store, and loads no workflow and no agent. It makes steps pending again, sets them
to error, or requests the undo of their tasks, and rings doorbells; schedulers and agents do the rest. All
other periodic work is the housekeeper's. One of several supervisors leads.
"""

import random
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from . import conf
from .cluster import crash_points
from .cluster.duty import NOW, Done, Duty, Sweep
from .cluster.leader_election import Leadership
from .cluster.leader_memory import Memory
from .models import low_water
from .models.low_water import IN_FLIGHT
from .supervision import duties
from .supervision.doorbells import RING_DOORBELLS
from .supervision.duties import Progress
from .supervision.failures import recover
from .supervision.losses import Losses
from .transitions.clock_jump import move_times
from .transitions.failures import failed_tasks, wake
from .transitions.lateness import end_waits, late_tasks
from .transitions.unmended import request_undo_of_unmended, unmended_tasks


def _losses(sweep: Sweep) -> Losses:
    return sweep.memory.of("losses", Losses)


def _from_deadline() -> Mapping[str, Any]:
    return {"from_complete_by": low_water.deadline()}


def _recover_failed(sweep: Sweep) -> None:
    """Count and decide each failed or expired step."""
    losses = _losses(sweep)

    def handle(tasks: Collection[UUID]) -> int:
        recovered = recover(
            tasks, by=sweep.leadership.actor, now=sweep.now, losses=losses, chance=sweep.chance
        )
        sweep.done.update(recovered)
        return recovered.total()

    find = partial(failed_tasks, now=sweep.now, silent_since=losses.silent_since)
    sweep.in_batches_of_tasks(find, handle)
    crash_points.reached("supervisor.mid_sweep", sweep.done["retried"])


def _request_undo_of_unresolved(sweep: Sweep) -> None:
    """Request the undo of tasks with a rejected step that was not corrected in time."""

    def handle(tasks: Collection[UUID]) -> int:
        requested, extended = request_undo_of_unmended(
            tasks, by=sweep.leadership.actor, now=sweep.now
        )
        sweep.done["to undo"] += requested
        return requested + extended

    sweep.in_batches_of_tasks(partial(unmended_tasks, now=sweep.now), handle)


def _end_waits(sweep: Sweep) -> None:
    """Remind of what is awaited, and decide what follows as it is late."""

    def handle(tasks: Collection[UUID]) -> int:
        due = end_waits(tasks, by=sweep.leadership.actor, now=sweep.now)
        sweep.done["waits due"] += due
        return due

    sweep.in_batches_of_tasks(partial(late_tasks, now=sweep.now), handle)


# The conditions read the first row in the order of an index, as an EXISTS may read all rows.
DUTIES = (
    Duty(
        name="move times after a clock jump",
        run=lambda _: move_times(),
        due="EXISTS (SELECT FROM orchestration_jumpedtime)",
    ),
    Duty(
        name="detect lost messages",
        run=lambda sweep: _losses(sweep).look(sweep.now),
        due=IN_FLIGHT,
        parameters=low_water.all_agents,
    ),
    Duty(
        name="recover failed steps",
        run=_recover_failed,
        # by step_expiry
        due=f"""(SELECT true FROM orchestration_step WHERE process_state = 'processing'
            AND complete_by >= %(from_complete_by)s AND complete_by <= {NOW}
            ORDER BY complete_by LIMIT 1)""",  # noqa: S608 - put together from constants
        parameters=_from_deadline,
    ),
    Duty(
        name="request undo of unresolved rejections",
        run=_request_undo_of_unresolved,
        # by step_unmended
        due=f"""(SELECT min(resolve_by) FROM orchestration_step
            WHERE resolve_by IS NOT NULL) <= {NOW}""",  # noqa: S608 - put together from constants
    ),
    Duty(
        name="end waits that are over",
        run=_end_waits,
        # by wait_due
        due=f"""(SELECT min(due_at) FROM orchestration_wait
            WHERE due_at IS NOT NULL) <= {NOW}""",  # noqa: S608 - put together from constants
    ),
    Duty(
        name="release due retries",
        run=lambda sweep: sweep.in_batches(partial(wake, conf.BATCH_SIZE)),
        counted="retries due",
        # by step_retry
        due=f"""(SELECT min(run_after) FROM orchestration_step
            WHERE process_state = 'pending' AND run_after IS NOT NULL) <= {NOW}""",  # noqa: S608
    ),
    RING_DOORBELLS,
)


def sweep(
    leadership: Leadership,
    memory: Memory | None = None,
    progress: Progress = lambda: None,
    chance: Callable[[], float] = random.random,
) -> Done:
    """Run one sweep over all steps, in batches, oldest first; see `duties.run`."""
    run = Sweep(leadership=leadership, memory=memory or Memory(), chance=chance)
    return duties.run(run, DUTIES, progress)
