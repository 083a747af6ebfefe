"""Lock tasks, and read them with all their steps: what is decided about them is a `Change`."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any
from uuid import UUID

import msgspec
from django.db.models import F, QuerySet, Subquery, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import IsNull

from ..database import prepared, sql
from ..database.sql import Among, Parameter, compiled
from ..decisions.flow import Flow
from ..decisions.progress import RENAMED, StepView
from ..models import Step, Task
from .candidates import OF_HELD_TASK
from .change import Change

NAMES = StepView.__struct_fields__
ID, TASK = NAMES.index("id"), NAMES.index("task")
# read as texts, for msgspec; the types of their values
JSON: Mapping[str, Any] = {
    **dict.fromkeys(("request", "loads", "result", "undo_request", "patience"), Any), "flow": Flow,
}  # fmt: skip
DECODERS = [(NAMES.index(name), msgspec.json.Decoder(kind)) for name, kind in JSON.items()]
COLUMNS = (
    RENAMED.get(name, name) + ("::text" if name in {"task", *JSON} else "") for name in NAMES
)
STEPS = f"""
SELECT {", ".join(COLUMNS)} FROM orchestration_step
WHERE task_id = ANY(%(tasks)s::uuid[])
"""  # noqa: S608 - names of our own


def tasks_of(steps: QuerySet[Step], limit: int, beyond: Collection[UUID]) -> list[UUID]:
    """Return the tasks of the first `limit` of `steps`, in their order, `beyond` some tasks."""
    task_ids = steps.exclude(task__in=beyond).values_list("task_id", flat=True)[:limit]
    return list(dict.fromkeys(task_ids))


def lock(tasks: Collection[UUID], *, wait: bool = True) -> dict[UUID, Change]:
    """Lock the tasks in the order of their ids; read all their steps.

    Without `wait`, those that others have locked are left out, and no lock is waited for long from
    here to the end of the transaction.
    """
    if not tasks:
        return {}
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
            parent=parent,
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
            parent,
            was_held,
        ) in rows
    }
    read_new_steps(changes)
    return changes


@cache
def locking(*, skip: bool) -> str:
    """Return the statement that locks tasks, and reads what a change of them needs."""
    return compiled(
        Task.objects.select_for_update(no_key=True, skip_locked=skip)
        .filter(Among(F("id"), Parameter("tasks", "uuid[]")))
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
            "parent",
            Subquery(OF_HELD_TASK),
        )
    )


def read_new_steps(changes: Mapping[UUID, Change]) -> None:
    """Read the steps of locked tasks that have come since they were read."""
    by_text = {str(task): change for task, change in changes.items()}
    rows = prepared.run(STEPS, {"tasks": list(by_text)})
    for row in sorted(rows, key=itemgetter(ID)):
        change = by_text[row[TASK]]
        if row[ID] not in change.steps:
            change.steps[row[ID]] = _view(row, change)


def _view(row: Sequence[Any], change: Change) -> StepView:
    values = list(row)
    values[TASK] = change.id
    for place, decoder in DECODERS:
        if (text := values[place]) is not None:
            values[place] = decoder.decode(text)
    return StepView(*values)
