"""Effects that show too late: in replies that may not change their step any more."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from .. import alerts, notices, sql
from ..messages import Reply
from ..models import Event, Step, Task
from ..models.alert import Severity
from ..models.history import EventKind
from ..progression import StepPlan, StepView
from ..states import Direction, Outcome, StepState
from ..undoing import UNUSED, is_uncounted, late_undo
from ..workflow import step_key
from .changes import Change, note, read_steps
from .create import insert_steps

REVIVED = """
UPDATE orchestration_step SET process_state = 'pending', request = %(request)s::jsonb,
    pending_since = clock_timestamp(), ended_at = NULL
WHERE id = %(id)s AND process_state IN ('waiting', 'cancelled')
"""

UNDONE_BY_ITSELF = "Its task is being undone, or was: the undo of this step is sent as well."
FOR_A_PERSON = (
    "Nothing undoes this effect by itself. Find out at the service what stands under the key, settle "
    "it by hand, then close this alert."
)


def hear_late(
    replies: Sequence[Reply], changes: Mapping[UUID, Change], *, by: str
) -> dict[UUID, Change]:
    """Act on what refused replies show; return the locked tasks that changed.

    A step that goes on, or is in error, is in doubt from then on: the next try under its key finds
    the effect. One that counts nowhere any more raises an alert; if its task is being undone, or
    was, its undo is sent.
    """
    changed: dict[UUID, Change] = {}
    doubtful: list[int] = []
    events: list[Event] = []
    for reply in replies:
        change = changes.get(UUID(reply.task))
        step = change.steps.get(reply.step) if change else None
        if change is None or step is None or reply.outcome not in {Outcome.DONE, Outcome.UNKNOWN}:
            continue
        if step.state in GOES_ON and reply.generation in {0, step.generation}:
            doubtful.append(step.id)
            change.moved(replace(step, in_doubt=True))
            continue
        result = reply.result if reply.outcome == Outcome.DONE else None
        undo = _counterpart(step, change)
        if is_uncounted(step, undo, generation=reply.generation, result=result):
            done = replace(step, result=result, generation=reply.generation or step.generation)
            events.append(_alarm(change, done, undone=_undo(change, done, undo), by=by))
            changed[change.id] = change
    if doubtful:
        Step.objects.filter(id__in=doubtful).update(in_doubt=True)
    Event.objects.bulk_create(events)
    return changed


GOES_ON = (StepState.PENDING, StepState.PROCESSING, StepState.ERROR)


def _counterpart(step: StepView, change: Change) -> StepView | None:
    """Return the undo step of a step, if it has one."""
    undoes = (one for one in change.steps.values() if one.direction == Direction.UNDO)
    return next((one for one in undoes if one.name == step.name), None)


def _undo(change: Change, done: StepView, undo: StepView | None) -> bool:
    """Have an effect undone whose step had been given up; return whether that can be."""
    request = late_undo(change.steps.values(), done, undo, change.data)
    if not change.undoing or request is None:
        return False
    if undo is not None:
        (request_text,) = sql.as_json([request])
        sql.run(REVIVED, {"id": undo.id, "request": request_text})
    else:
        plan = StepPlan(
            name=done.name, agent=done.agent, action=done.undo_action, after=(), request=request,
            ready=True, direction=Direction.UNDO,
        )  # fmt: skip
        priority = Task.objects.values_list("priority", flat=True).get(id=change.id)
        insert_steps([(change.id, priority, plan)])
    read_steps({change.id: change})
    return True


def _alarm(change: Change, done: StepView, *, undone: bool, by: str) -> Event:
    """Raise the alert of a late effect; return its line of history, still to be written."""
    key = step_key(change.id, done.name, done.direction, done.generation)
    what = UNDONE_BY_ITSELF if undone else FOR_A_PERSON
    had = "may have had" if done.result is None else "had"
    alerts.raise_alert(
        _cause(change.id, done.name),
        severity=Severity.WARNING if undone else Severity.CRITICAL,
        title=f"{change.workflow}: {done.name} {had} its effect after it was given up"[:300],
        detail=f"Its key is {key}. {what}",
    )
    return note(change, done, EventKind.LATE, by=by, reason=f"Under {key}. {what}")


def close_undone(steps: Iterable[tuple[StepView, Change]]) -> None:
    """Close the alerts of late effects that undo steps which are done by now took back."""
    healed = [
        _cause(change.id, undo.name)
        for undo, change in steps
        for done in change.steps.values()
        if done.name == undo.name and done.direction == Direction.DO and done.state in UNUSED
    ]
    if healed:
        notices.close("a.fingerprint = ANY(%(causes)s)", {"causes": healed})


def _cause(task: UUID, step: str) -> str:
    return f"{alerts.LATE_EFFECT}{task}/{step}"
