"""What follows for the waiting steps of tasks: they start, wait for their time, are skipped, or fail."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..decisions.progress import StepView
from ..decisions.readiness import INVALID_TIME, NOT_BUILT, Follows, release
from ..payloads.placeholders import Unresolved
from ..states import StepState
from . import waits
from .change import Change, FinalFailure, Ready
from .locked_task import read_new_steps
from .new_steps import insert_steps
from .waits import NewTime


def follow(changes: Collection[Change]) -> None:
    """Decide what follows for the waiting steps of tasks, and note those that are ready."""
    insert_new_steps(changes)
    changed = [change for change in changes if change.followed != len(change.moves)]
    follows = [(change, _released(change)) for change in changed]
    while untimed := [(change, each.untimed) for change, each in follows if each.untimed]:
        _find_times(untimed)
        follows = [
            (change, _released(change) if each.untimed else each) for change, each in follows
        ]
    for change, each in follows:
        _apply(change, each)
        change.followed = len(change.moves)


def _released(change: Change) -> Follows:
    steps = change.steps.values()
    return release(steps, change.data, undoing=change.undoing, times=change.times)


def _find_times(untimed: Collection[tuple[Change, Collection[int]]]) -> None:
    """Find out whether steps may begin yet, or have them wait for their time.

    One that waits already does so until the supervisor sees that its time has come: as the clock may jump,
    nothing else decides that.
    """
    waiting = waits.held_back([step for _, steps in untimed for step in steps])
    for change, steps in untimed:
        for step in steps:
            if step in waiting:
                change.times[step] = False
            else:
                _find_time(change, change.steps[step])


def _find_time(change: Change, step: StepView) -> None:
    """Have a step wait for its time, unless that has come, or fail, if it is not known."""
    try:
        until = waits.begins_at(step, change.steps.values(), change.data)
    except Unresolved as error:
        change.fail(FinalFailure(step=step.id, code=INVALID_TIME, message=str(error), attempt=0))
        return
    if until is None:
        change.times[step.id] = True
    else:
        change.wait_for(NewTime(step, until))


def _apply(change: Change, follows: Follows) -> None:
    for step in follows.released:
        view = change.steps[step.id]
        if view.flow is not None and view.flow.is_awaited:
            _await(change, view, step.request)
            continue
        change.ready.append(Ready(change, view, step.request, change.arrival(view)))
        change.set(view.altered(state=StepState.PENDING, request=step.request))
    for problem in follows.broken:
        change.fail(
            FinalFailure(step=problem.id, code=problem.code, message=problem.reason, attempt=0)
        )
    for unneeded in follows.needless:
        change.cancel(change.steps[unneeded])
    for unneeded in follows.skipped:
        change.skip(change.steps[unneeded])


def _await(change: Change, step: StepView, request: Mapping[str, Any]) -> None:
    """Have a step await its person or signal, or fail, if it is not known until when."""
    try:
        until = waits.ends_by(step, change.steps.values(), change.data)
    except Unresolved as error:
        change.fail(FinalFailure(step=step.id, code=NOT_BUILT, message=str(error), attempt=0))
    else:
        change.await_result(step, request, until)


def insert_new_steps(changes: Iterable[Change]) -> None:
    """Write the undo steps that were decided on: what follows needs their ids."""
    if begun := [change for change in changes if change.new_steps]:
        insert_steps([step for change in begun for step in change.new_steps], again=True)
        read_new_steps({change.id: change for change in begun})
        for change in begun:
            change.new_steps = []
            change.followed = -1  # what follows depends on them
