"""Make the child tasks of steps in the transaction that has a step begin, and have its undo undo these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from .. import conf, registry
from ..cluster import crash_points
from ..database import clock, sql
from ..decisions.progress import StepView
from ..messaging.messages import Reply
from ..models import Task
from ..models.fields import child_id
from ..payloads import references
from ..payloads.placeholders import Unresolved
from ..states import Direction, Outcome, StepState, TaskState
from ..workflows.workflow import Refused
from . import create, joins
from .change import Change
from .create import NewTask, Parent, Planned

MOST = 10_000  # children of one step
DEEPEST = 10  # tasks, each a child of the one before
LONGEST_REFERENCE = 100

TOO_MANY, TOO_DEEP = "too_many_children", "children_too_deep"
REFUSED, TAKEN, TOO_LONG = "child_refused", "reference_taken", "reference_too_long"

# How deep tasks stand, and when they count as overdue: along the keys of tasks and steps.
ABOVE = f"""
WITH RECURSIVE up AS (
    SELECT t.id, t.complete_by, t.parent_id, 1 AS depth FROM orchestration_task t
    WHERE t.id = ANY(%(tasks)s::uuid[])
    UNION ALL
    SELECT up.id, up.complete_by, t.parent_id, up.depth + 1 FROM up
    JOIN orchestration_step s ON s.id = up.parent_id JOIN orchestration_task t ON t.id = s.task_id
    WHERE up.depth < {DEEPEST})
SELECT id, min(complete_by), max(depth) FROM up GROUP BY id
"""  # noqa: S608 - a constant of our own

Due = tuple[Change, StepView]


class NoChildren(Exception):
    """Why a step gets no children: a code, and a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Above(NamedTuple):
    """What children have of the task of their step: its time, and how deep it stands."""

    until: datetime
    depth: int


@dataclass(kw_only=True)
class Begun:
    """Steps that begin, each with the reply that this amounts to, and the children to be written."""

    replies: list[tuple[Change, StepView, Reply]] = field(default_factory=list)
    new: dict[int, list[Planned]] = field(default_factory=dict)  # by step


def begin(due: Sequence[Due], by: str) -> tuple[Begun, list[Due]]:
    """Plan the children of steps whose time has come; return also the steps whose workflow is not known here.

    A step that was tried before keeps the children that are not being undone.
    """
    begun, unknown = Begun(), list[Due]()
    making = [(change, step) for change, step in due if step.direction == Direction.DO]
    above = _above({change.id for change, _ in making})
    there = _there([step.id for _, step in making if step.attempt])
    for change, step in due:
        if step.direction == Direction.UNDO:
            begun.replies.append((change, step, _reply(step, by, Outcome.LATER)))
            begun.new[step.id] = []
            continue
        if step.flow is None or step.flow.workflow not in registry.workflows:
            unknown.append((change, step))
            continue
        try:
            new = _planned(change, step, above[change.id], there.get(step.id, set()))
        except NoChildren as why:
            reply = _reply(step, by, Outcome.REJECTED, code=why.code, message=str(why))
        else:
            begun.new[step.id] = new
            count = len(step.request["items"])
            reply = _reply(step, by, Outcome.LATER if count else Outcome.DONE)
        begun.replies.append((change, step, reply))
    return _without_taken(begun, by), unknown


def write(begun: Begun, steps: Sequence[StepView]) -> set[str]:
    """Write the children of steps that begin; return the agents that they wait for.

    Children that have ended already, and those that are to be undone, are looked at.
    """
    new = [task for step in steps for task in begun.new.get(step.id, ())]
    for first in range(0, len(new), conf.BATCH_SIZE):
        create.write(new[first : first + conf.BATCH_SIZE])
        crash_points.reached("children.made")
    ended = {
        task.item.parent.step
        for task in new
        if task.item.parent and task.state == TaskState.PROCESSED
    }
    later = {step.id for change, step, reply in begun.replies if reply.outcome == Outcome.LATER}
    undoes = [step for step in steps if step.direction == Direction.UNDO]
    joins.undo_all([_undone_by(step, begun) for step in undoes])
    again = {step.id for step in steps if step.id in later and step.attempt} - {
        step.id for step in undoes
    }
    if looked := ended | again:
        joins.look_at(sorted(looked))
    return {plan.agent for task in new for plan in task.steps if plan.state == StepState.PENDING}


def _undone_by(undo: StepView, begun: Begun) -> int:
    """Return the step whose children an undo step undoes."""
    change = next(change for change, step, _ in begun.replies if step.id == undo.id)
    return next(
        step.id
        for step in change.steps.values()
        if step.name == undo.name and step.direction == Direction.DO
    )


def _planned(change: Change, step: StepView, above: _Above, there: set[int]) -> list[Planned]:
    """Return the children of a step, but for the positions that have one; raise `NoChildren`."""
    items = step.request.get("items")
    if not isinstance(items, list):
        raise NoChildren(REFUSED, "its request has no list of items")
    if len(items) > MOST:
        raise NoChildren(
            TOO_MANY, f"it would have {len(items):,} children; at most {MOST:,} are made"
        )
    if items and above.depth >= DEEPEST:
        raise NoChildren(TOO_DEEP, f"its children would stand deeper than {DEEPEST} levels")
    return [
        _child(change, step, position, data, above)
        for position, data in enumerate(items)
        if position not in there
    ]


def _child(change: Change, step: StepView, position: int, data: Any, above: _Above) -> Planned:
    reference = references.of_child(change.reference, step.name, position, step.attempt)
    if len(reference) > LONGEST_REFERENCE:
        raise NoChildren(
            TOO_LONG, f"the reference {reference} has more than {LONGEST_REFERENCE} characters"
        )
    if not isinstance(data, dict):
        raise NoChildren(REFUSED, f"child {position}: its input is {data!r:.100}, not an object")
    try:
        return create.plan(
            NewTask(
                workflow=step.flow.workflow if step.flow else "",
                reference=reference,
                data=data,
                priority=change.priority,
                fairness_key=change.fairness_key,
                id=child_id(change.id, reference),
                parent=Parent(step.id, position, above.until),
            )
        )
    except (Unresolved, Refused) as error:
        raise NoChildren(REFUSED, f"child {position}: {error}") from None


def _above(tasks: set[UUID]) -> Mapping[UUID, _Above]:
    if not tasks:
        return {}
    rows = sql.run(ABOVE, {"tasks": [str(task) for task in tasks]})
    return {task: _Above(until, depth) for task, until, depth in rows}


def _there(steps: Sequence[int]) -> dict[int, set[int]]:
    """Return the positions of children that are not being undone, by step (index task_of_parent)."""
    there: dict[int, set[int]] = {}
    if steps:
        rows = Task.objects.filter(parent__in=steps, undo_at=None)
        for step, position in rows.values_list("parent", "position"):
            there.setdefault(step or 0, set()).add(position or 0)
    return there


def _without_taken(begun: Begun, by: str) -> Begun:
    """Refuse the children of steps where a reference belongs to another task, by one query."""
    planned = {
        (task.item.workflow, task.item.reference): step
        for step, new in begun.new.items()
        for task in new
    }
    if not planned:
        return begun
    workflows, references = zip(*planned, strict=True)
    rows = Task.objects.filter(workflow__in=set(workflows), reference__in=references)
    taken: dict[int, str] = {}
    for workflow, reference in rows.values_list("workflow", "reference"):
        if step := planned.get((workflow, reference)):
            taken[step] = reference
            begun.new.pop(step, None)
    begun.replies = [
        (change, step, _reply(step, by, Outcome.REJECTED, code=TAKEN,
                              message=f"the reference {taken[step.id]} belongs to another task"))
        if step.id in taken else (change, step, reply)
        for change, step, reply in begun.replies
    ]  # fmt: skip
    return begun


def _reply(
    step: StepView, by: str, outcome: Outcome, *, code: str = "", message: str = ""
) -> Reply:
    now = clock.now()
    result: dict[str, Any] = {"items": []} if outcome == Outcome.DONE else {}
    return Reply(
        step=step.id, task=step.task, attempt=step.attempt + 1, outcome=outcome.value, result=result,
        code=code, message=message, tries=1, started=now, ended=now, by=by, generation=step.generation,
    )  # fmt: skip
