"""Lock tasks with all their steps, and write what follows from changed steps."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from django.db.models import F, QuerySet, Subquery, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import IsNull

from ..applications.outbox import StatusUpdate
from ..database import prepared, sql
from ..database.sql import Among, Given, compiled
from ..decisions.fairness import Arrival, Line
from ..decisions.progress import RENAMED, StepView
from ..decisions.readiness import release
from ..models import Event, Step, Task
from ..models.history import EventKind
from ..models.inbox import StatusKind
from ..states import LOCAL, StepState
from . import reports
from .candidates import OF_HELD_TASK
from .task_state import FinalFailure, settle, to_error
from .turns import next_turns
from .versions import AS_DECIDED, attempts, require

RELEASED = """
UPDATE orchestration_step s SET process_state = 'pending', request = r.request,
    pending_since = clock_timestamp(), turn = r.turn
FROM unnest(%(ids)s::bigint[], %(attempts)s::int[], %(generations)s::int[], %(requests)s::jsonb[],
    %(turns)s::bigint[]) AS r (id, attempt, generation, request, turn)
WHERE s.id = r.id
    AND (s.process_state, s.attempt, s.generation) = ('waiting', r.attempt, r.generation)
RETURNING s.id
"""

CANCELLED = f"""
UPDATE orchestration_step s SET process_state = 'cancelled', locked_by = NULL, complete_by = NULL,
    run_after = NULL, held_by_id = NULL, alert_id = NULL, resolve_by = NULL, probing_outcome = false,
    ended_at = clock_timestamp(), loaded = NULL
{AS_DECIDED}
    AND s.process_state IN ('waiting', 'pending', 'processing', 'error')
RETURNING s.id
"""  # noqa: S608 - a constant of our own


NAMES = StepView.__struct_fields__
ID, TASK = NAMES.index("id"), NAMES.index("task")
JSON = ("request", "loads", "result", "undo_request")  # as texts, for msgspec
TEXTS = [NAMES.index(name) for name in JSON]
COLUMNS = (
    RENAMED.get(name, name) + ("::text" if name in {"task", *JSON} else "") for name in NAMES
)
STEPS = f"""
SELECT {", ".join(COLUMNS)} FROM orchestration_step
WHERE task_id = ANY(%(tasks)s::uuid[])
"""  # noqa: S608 - names of our own

# states of a step that applications are notified of; a failure is reported for the whole task
REPORTED = {StepState.PROCESSED, StepState.SKIPPED}


@dataclass(kw_only=True)
class Change:
    """One locked task: its data, the present states of its steps, and their final failures."""

    id: UUID
    workflow: str
    reference: str
    data: dict[str, Any]
    state: str
    undoing: bool
    reply_to: str = ""
    owner_application: str = ""
    notify_steps: bool = False
    priority: int = 0
    fairness_key: str = ""
    was_held: bool | None = None  # whether a hold on it is in force; None: there never was one
    steps: dict[int, StepView] = field(default_factory=dict)
    updates: list[StatusUpdate] = field(default_factory=list)
    final_failures: list[FinalFailure] = field(default_factory=list)

    def moved(self, step: StepView) -> None:
        """Record a step's new state, and an update for the application if it wants those of steps."""
        before = self.steps.get(step.id)
        self.steps[step.id] = step
        if self.notify_steps and before and before.state != step.state and step.state in REPORTED:
            detail = {"step": step.name, "direction": step.direction, "state": step.state}
            self.updates.append(StatusUpdate(task=self.id, kind=StatusKind.STEP, detail=detail))

    def arrival(self, step: StepView) -> Arrival:
        """Return how a step joins its agent's line: a later step of the same task there goes next.

        So tasks that have begun end before others of their fairness key begin.
        """
        been_there = any(
            other.agent == step.agent and other.state != StepState.WAITING
            for other in self.steps.values()
        )
        line = Line(step.agent, self.priority, self.fairness_key)
        return Arrival(line, again=been_there, begun=been_there)


class Ready(NamedTuple):
    """A waiting step that may start, with its request, how it joins its line, and its turn there.

    It has none before the line was read.
    """

    change: Change
    step: StepView
    request: Mapping[str, Any]
    arrival: Arrival
    turn: int | None = None


@dataclass(kw_only=True)
class Consequences:
    """What to wake after a change."""

    agents: set[str] = field(default_factory=set)  # whose backlog grew
    ready: list["Ready"] = field(default_factory=list)  # those that the caller writes
    applications: set[str] = field(default_factory=set)  # who has a status message waiting


def tasks_of(steps: QuerySet[Step], limit: int, beyond: Collection[UUID]) -> list[UUID]:
    """Return the tasks of the first `limit` of `steps`, in their order, `beyond` some tasks."""
    task_ids = steps.exclude(task__in=beyond).values_list("task_id", flat=True)[:limit]
    return list(dict.fromkeys(task_ids))


def lock(tasks: Collection[UUID], *, wait: bool = True) -> dict[UUID, Change]:
    """Lock the tasks in the order of their ids; read all their steps.

    Without `wait`, those that others have locked are left out, and no lock is waited for long from
    here to the end of the transaction.
    """
    by_text = {str(task): task for task in tasks}
    rows = prepared.run(
        locking(skip=not wait),
        {"tasks": list(by_text)},
        before="" if wait else sql.BRIEFLY,
    )
    changes = {
        by_text[task]: Change(
            id=by_text[task],
            workflow=workflow,
            reference=reference,
            data=msgspec.json.decode(data),
            state=state,
            undoing=undoing,
            reply_to=reply_to,
            owner_application=owner,
            notify_steps=notify_steps,
            priority=priority,
            fairness_key=fairness_key,
            was_held=was_held,
        )
        for (
            task,
            workflow,
            reference,
            data,
            state,
            undoing,
            reply_to,
            owner,
            notify_steps,
            priority,
            fairness_key,
            was_held,
        ) in rows
    }
    read_steps(changes)
    return changes


@cache
def locking(*, skip: bool) -> str:
    """Return the statement that locks tasks, and reads what a change of them needs."""
    return compiled(
        Task.objects.select_for_update(no_key=True, skip_locked=skip)
        .filter(Among(F("id"), Given("tasks", "uuid[]")))
        .order_by("id")
        .values_list(
            Cast("id", TextField()),
            "workflow",
            "reference",
            "data",
            "state",
            IsNull(F("undo_at"), False),
            "reply_to",
            "owner_application",
            "notify_steps",
            "priority",
            "fairness_key",
            Subquery(OF_HELD_TASK),
        )
    )


def read_steps(changes: Mapping[UUID, Change]) -> None:
    """Read the steps of locked tasks."""
    by_text = {str(task): change for task, change in changes.items()}
    rows = prepared.run(STEPS, {"tasks": list(by_text)})
    for row in sorted(rows, key=itemgetter(ID)):
        values = list(row)
        change = by_text[values[TASK]]
        values[TASK] = change.id
        for place in TEXTS:
            if (text := values[place]) is not None:
                values[place] = msgspec.json.decode(text)
        change.steps[values[ID]] = StepView(*values)


def cancel(steps: Collection[StepView]) -> None:
    """Cancel steps: waiting, pending, processing or error → cancelled."""
    if steps:
        require(sql.run(CANCELLED, attempts(steps)), steps)


def finish(changes: Iterable[Change], *, by: str, keep_ready: bool = False) -> Consequences:
    """Write what follows for locked tasks from the steps that have changed.

    Waiting steps that are ready become pending, undo steps that are not needed are cancelled, failed
    ones go to error, and each task's own state follows. With `keep_ready` those that became ready for an
    agent are returned instead, and are for the caller to write.
    """
    changes = list(changes)
    done = Consequences()
    ready: list[Ready] = []
    needless: list[StepView] = []
    for change in changes:
        released, broken, unneeded = release(
            change.steps.values(), change.data, undoing=change.undoing
        )
        for step in released:
            view = change.steps[step.id]
            ready.append(Ready(change, view, step.request, change.arrival(view)))
            change.moved(view.altered(state=StepState.PENDING, request=step.request))
            done.agents.add(view.agent)
        for problem in broken:
            change.moved(change.steps[problem.id].altered(state=StepState.ERROR))
            change.final_failures.append(
                FinalFailure(step=problem.id, code=problem.code, message=problem.reason, attempt=0)
            )
        for unneeded_step in unneeded:
            needless.append(change.steps[unneeded_step])
            change.moved(needless[-1].altered(state=StepState.CANCELLED))
    done.ready = [one for one in ready if keep_ready and one.step.agent != LOCAL]
    release_ready([one for one in ready if not keep_ready or one.step.agent == LOCAL])
    cancel(needless)
    to_error(
        [
            (failure, change.id, change.workflow, change.steps[failure.step])
            for change in changes
            for failure in change.final_failures
        ],
        by=by,
    )
    done.applications = settle(
        {
            change.id: (change.state, list(change.steps.values()), change.undoing)
            for change in changes
        },
        [one for change in changes for one in change.updates],
        {change.id: change.final_failures for change in changes},
        followed={change.id for change in changes if change.reply_to or change.owner_application},
        kept=[change.id for change in changes if change.owner_application],
    )
    reports.finished(changes)
    return done


def release_ready(ready: Sequence[Ready]) -> None:
    """Write steps that are ready: waiting → pending. Those without a turn get one."""
    if ready:
        turns = iter(next_turns([one.arrival for one in ready if one.turn is None]))
        written = prepared.run(
            RELEASED,
            {
                **attempts(one.step for one in ready),
                "requests": sql.as_json([one.request for one in ready]),
                "turns": [next(turns) if one.turn is None else one.turn for one in ready],
            },
        )
        require(written, ready)


def note(
    change: Change,
    step: StepView | None,
    kind: EventKind,
    *,
    by: str,
    reason: str,
    operation: int | None = None,
    **detail: Any,
) -> Event:
    """Return a line of history about a locked task, still to be written."""
    return Event(
        task_id=change.id,
        step_id=step.id if step else None,
        kind=kind,
        actor=by,
        attempt=step.attempt if step else None,
        reason=reason,
        operation_id=operation,
        detail=detail,
    )
