"""Write what was decided about locked tasks, and what follows for them, in a fixed number of statements."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from uuid import UUID

from ..alerting import alerts, notifications
from ..alerting.alerts import AlertReport
from ..applications import outbox
from ..applications.outbox import StatusUpdate
from ..database import prepared
from ..decisions.progress import task_state
from ..incidents import tallies
from ..models import Event
from ..models.history import EventKind
from ..models.inbox import StatusKind
from ..states import FINAL_TASK_STATES, Direction, Outcome, StepState, TaskState
from . import external_ids, joins, moves, operation_items, reports, step_update, waits
from .change import Change, Ready
from .following import follow
from .step_update import Move, require
from .turns import next_turns

# Of the task itself, the guard is its state; an undo begins once.
TASK_STATES = """
UPDATE orchestration_task t SET
    state = s.state,
    undo_at = CASE s.state WHEN 'undoing' THEN coalesce(t.undo_at, clock_timestamp()) ELSE t.undo_at END,
    ended_at = CASE WHEN s.final THEN clock_timestamp() END,
    -- processed again once a part is undone: it gets the time that it was given at first
    complete_by = CASE t.state WHEN 'processed' THEN clock_timestamp() + (t.complete_by - t.created_at)
        ELSE t.complete_by END,
    overdue = t.overdue AND NOT s.final AND t.state <> 'error'  -- after an error it is reported again
FROM unnest(%(ids)s::uuid[], %(before)s::text[], %(states)s::text[], %(final)s::bool[])
    AS s (id, before, state, final)
WHERE t.id = s.id AND t.state = s.before
RETURNING t.id
"""

STATUS_KINDS = {
    TaskState.PROCESSED: StatusKind.COMPLETED,
    TaskState.UNDOING: StatusKind.UNDOING,
    TaskState.UNDONE: StatusKind.UNDONE,
}


@dataclass(kw_only=True)
class Consequences:
    """What to wake after a change; `ready` steps are yet to be written, or claimed at once."""

    agents: set[str] = field(default_factory=set)  # whose backlog grew
    ready: list[Ready] = field(default_factory=list)
    applications: set[str] = field(default_factory=set)  # who has a status message waiting
    alerted: bool = False  # locks of alerts are held until the commit
    reported: bool = False  # a step awaits what was reported before, or its children may have ended


def finish(changes: Iterable[Change], *, by: str) -> Consequences:
    """Write what was decided about locked tasks and what follows; steps that are ready become pending."""
    follows = settle(changes, by=by)
    release_ready(follows.ready)
    return follows


def settle(changes: Iterable[Change], *, by: str) -> Consequences:
    """Write what was decided about locked tasks and what follows, but for the steps that are ready.

    These are the caller's to write, or to claim. Undo steps that are not needed are cancelled, failed ones
    go to error with an alert, and each task's own state follows.
    """
    changes = list(changes)
    follow(changes)
    unused = _count_off(changes, by=by)
    incidents = _count(changes, by=by)
    all_moves = [move for change in changes for move in change.moves]
    step_update.write(_with_incidents(changes, incidents) if incidents else all_moves)
    reported = _write_waits(changes)
    _after_errors(changes, by=by)
    applications = _write_tasks(changes)
    reported |= joins.ended(changes)
    Event.objects.bulk_create([event for change in changes for event in change.events])
    alarms = [alarm for change in changes for alarm in change.alarms]
    _write_alerts(alarms, [cause for change in changes for cause in change.recovered], unused)
    reports.finished(changes)
    ready = [step for change in changes for step in change.ready]
    return Consequences(
        agents={step.step.agent for step in ready},
        ready=ready,
        applications=applications,
        alerted=bool(incidents or alarms),
        reported=reported,
    )


def release_ready(ready: Sequence[Ready]) -> None:
    """Write steps that are ready: waiting → pending. Those without a turn get one."""
    turns = iter(next_turns([step.arrival for step in ready if step.turn is None]))
    moves.RELEASED.write(
        [step.step for step in ready],
        request=[step.request for step in ready],
        turn=[next(turns) if step.turn is None else step.turn for step in ready],
    )


def _write_waits(changes: Sequence[Change]) -> bool:
    """Write what steps wait for; return whether any of what they await has been reported already."""
    times = [time for change in changes for time in change.timed]
    waits.write_times(times, {step for change in changes for step in change.begun})
    closed = {step for change in changes for step in change.closed}
    early = waits.write([wait for change in changes for wait in change.opened], closed)
    accepted = [(change, *what) for change in changes for what in change.accepted]
    return external_ids.write(accepted) or early


def _count_off(changes: Iterable[Change], *, by: str) -> set[int]:
    """Count off the steps that leave error; return their alerts."""
    left: dict[bool, list[int]] = {True: [], False: []}
    closing: set[int] = set()
    for change in changes:
        for update, before, *_ in change.moves:
            stays = change.steps[before.id].state == StepState.ERROR
            if before.alert_id and before.state == StepState.ERROR and not stays:
                left[update is moves.RESUBMITTED].append(before.id)
                closing.add(before.alert_id)
    tallies.remove_open_failures(left[True], retried_by=by)
    tallies.remove_open_failures(left[False])
    return closing


def _with_incidents(changes: Sequence[Change], incidents: Mapping[int, int]) -> list[Move]:
    """Return the moves to write, with their incidents, and with an open alert for each step in error."""
    failed = [failure for change in changes for failure in change.final_failures]
    alert_ids = alerts.raise_for_steps(
        [
            alerts.StepError(
                incident=incidents[failure.step],
                message=failure.message,
                settles_itself=failure.resolve_within is not None,
            )
            for failure in failed
        ]
    )
    errors = {failure.step: alert for failure, alert in zip(failed, alert_ids, strict=True)}
    filled = []
    for change in changes:
        for move in change.moves:
            step, values = move.before.id, move.values
            if "incident" in values and step in incidents:
                values = {**values, "incident": incidents[step]}
            if move.update is moves.FAILED:
                values = {**values, "alert": errors[step]}
            filled.append(move._replace(values=values))
    return filled


def _count(changes: Sequence[Change], *, by: str) -> dict[int, int]:
    """Count failures; return the incidents by step, also of those that were counted before."""
    failed = [failure for change in changes for failure in change.final_failures]
    known = {failure.step: failure.incident for failure in failed if failure.incident is not None}
    failures = {step: failure for change in changes for step, failure in change.failures.items()}
    counted = tallies.count_failures(list(failures.values()), by=by)
    return known | dict(zip(failures, counted, strict=True))


def _after_errors(changes: Sequence[Change], *, by: str) -> None:
    """Count the steps that are in error now; note them in the history, and in bulk operations."""
    failed = [(change, failure) for change in changes for failure in change.final_failures]
    if not failed:
        return
    tallies.add_open_failures([failure.step for _, failure in failed])
    for change, failure in failed:
        step = change.steps[failure.step]
        event = change.note(step, EventKind.ERROR, by=by, reason=failure.line)
        event.attempt = failure.attempt
    operation_items.failed([(failure.step, change.id, failure.line) for change, failure in failed])


def _write_alerts(
    raised: Sequence[AlertReport], recovered: Sequence[str], unused: Collection[int]
) -> None:
    """Raise the alerts of late effects; close those that no step in error or late effect has any more."""
    if raised:
        alerts.raise_all(raised)
    if recovered:
        notifications.close("a.fingerprint = ANY(%(causes)s)", {"causes": list(recovered)})
    if unused:
        alerts.close_if_unused(unused)


def _write_tasks(changes: Sequence[Change]) -> set[str]:
    """Write the state of each task that its steps' states change; return the applications to notify."""
    updates: list[StatusUpdate] = []
    for change in changes:
        before = change.state
        state = task_state(before, change.steps.values(), undoing=change.undoing)
        if state != before:
            if (before, state) == (TaskState.PENDING, TaskState.PROCESSED):
                change.enter(TaskState.PROCESSING)  # as its time came, no step of it was needed
            change.enter(state)
            if state == TaskState.ERROR:
                change.updates.append(_failure(change))
            elif state in STATUS_KINDS:
                change.updates.append(StatusUpdate(task=change.id, kind=STATUS_KINDS[state]))
            elif before == TaskState.ERROR:
                change.updates.append(StatusUpdate(task=change.id, kind=StatusKind.RESUMED))
        if change.reply_to or change.owner_application:
            updates += change.updates
    for states in zip_longest(*(change.task_states for change in changes)):
        _write_states(
            {
                change.id: entered
                for change, entered in zip(changes, states, strict=True)
                if entered is not None
            }
        )
    owned = [change for change in changes if change.owner_application]
    ready = {step.step.id: step.request for change in owned for step in change.ready}
    return outbox.write(updates, [change.id for change in owned], ready)


def _write_states(entered: Mapping[UUID, tuple[str, TaskState]]) -> None:
    """Write the states of locked tasks: of each the one it was in, and the new one."""
    if not entered:
        return
    written = prepared.run(
        TASK_STATES,
        {
            "ids": [str(task) for task in entered],
            "before": [str(before) for before, _ in entered.values()],
            "states": [state.value for _, state in entered.values()],
            "final": [state in FINAL_TASK_STATES for _, state in entered.values()],
        },
    )
    require(written, entered)


def _failure(change: Change) -> StatusUpdate:
    """Return the update about a task in error: whether another input may help, and where it failed.

    The service's message is left out: it may contain anything.
    """
    failed = [step for step in change.steps.values() if step.state == StepState.ERROR]
    codes = {failure.step: failure.code for failure in change.final_failures}
    # while it may have been done, its input cannot be changed
    rejected = all(
        step.outcome == Outcome.REJECTED and step.direction == Direction.DO and not step.in_doubt
        for step in failed
    )
    return StatusUpdate(
        task=change.id,
        kind=StatusKind.ACTION_NEEDED if rejected else StatusKind.FAILED,
        detail={
            "steps": [
                {"step": step.name, "direction": step.direction, "code": codes.get(step.id, "")}
                for step in failed
            ]
        },
    )
