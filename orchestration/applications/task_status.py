"""The progress of a task, which its application reads repeatedly while people watch."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import datetime
from enum import Enum
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

import msgspec

from ..database import prepared, sql
from ..decisions.compensation import standing
from ..decisions.flow import CHILDREN
from ..decisions.progress import RENAMED, StepView
from ..models.inbox import SUBMISSIONS
from ..payloads.text import as_text
from ..states import Direction, StepState, TaskState

# Uses submission_set_aside and submission_once: the last one of a reference, unless another one waits.
SET_ASIDE = f"""
SELECT CASE WHEN {SUBMISSIONS.where(SUBMISSIONS.closed)} THEN 'CLOSED' ELSE 'REFUSED' END
FROM orchestration_submission m WHERE workflow = %(workflow)s AND reference = %(reference)s
    AND {SUBMISSIONS.where(SUBMISSIONS.set_aside)}
    AND NOT EXISTS (SELECT FROM orchestration_submission o WHERE workflow = %(workflow)s
        AND reference = %(reference)s AND {SUBMISSIONS.where(SUBMISSIONS.open, "o")})
ORDER BY refused_at DESC LIMIT 1
"""  # noqa: S608 - put together from constants

# What an owner sees. While a step runs, its dispatch and the number of its attempt are invisible. A wait
# after an uncounted failure is visible, and so is the dispatch of an irreversible step, which forbids an
# undo. Texts and results change only with an attempt. Ordered as step_once is.
FINGERPRINT = """
md5(ROW(replace(t.state, 'processing', 'pending'), t.overdue, t.undo_at, (
    SELECT string_agg(
        CASE
            WHEN s.process_state IN ('pending', 'processing') OR %(ready)s::jsonb ? s.id::text THEN ROW(
                s.failure_count > 0,
                s.error_code,
                s.failure_count = 0 AND s.error_code <> '' AND s.process_state = 'pending',
                s.irreversible <> '' AND (s.in_doubt OR s.locked_by IS NOT NULL)
            )
            ELSE ROW(s.process_state, s.attempt, s.ended_at, s.resolve_by, s.in_doubt)
        END::text,
        ';' ORDER BY s.name, s.direction
    )
    FROM orchestration_step s
    WHERE s.task_id = t.id
))::text)
"""


class SetAsideReason(Enum):
    """Why a submission has not become a task."""

    REFUSED = "its application refused it: an operator decides"
    CLOSED = "an operator decided that it is not processed"


@dataclass(frozen=True, kw_only=True)
class StepProgress:
    """The progress of one step; an undo step has the name of the step that it undoes.

    `request` is what the agent is sent; before the step begins, its template. What the owner of a task is
    sent has neither templates nor counts of `children`, which change without the task.

    >>> task = submit("greet", reference="42", data={"name": "Ada"})
    >>> run.go()
    >>> [(step.name, step.state.value) for step in progress("greet", "42").steps]
    [('hello', 'processed'), ('again', 'processed')]
    """

    name: str
    direction: Direction
    state: StepState
    attempt: int
    failure_count: int
    ended_at: datetime | None
    error_code: str
    error_message: str
    resolve_by: datetime | None
    request: dict[str, Any]
    result: dict[str, Any] | None
    in_doubt: bool
    done_by: str = ""  # who did it by hand, if a person did
    children: dict[str, int] = dataclass_field(default_factory=dict)  # how many are in each state


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The progress of a task: its steps in the order of their declaration, then undo steps.

    `undoable`: a request for an undo would be accepted now. `data` is the task's input. A field that
    changes while a task runs must be part of `FINGERPRINT` too.

    >>> task = submit("greet", reference="42", data={"name": "Ada"})
    >>> run.go()
    >>> Progress.from_json(progress("greet", "42").as_json()).undoable  # as stored in a row of yours
    True
    """

    state: TaskState
    created_at: datetime
    ended_at: datetime | None
    overdue: bool
    undoable: bool
    steps: tuple[StepProgress, ...]
    data: dict[str, Any] = dataclass_field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON, to store it in a row of your own, for example."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Progress":
        """Read the result of `as_json`, of this release or an earlier one."""
        return msgspec.convert(plain, cls)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The progress of a task at one moment, without its input, and its version."""

    task: UUID
    version: str
    progress: Progress


def progress(workflow: str, reference: str) -> Progress | None:
    """Return the progress of a task, or None before it is created (one statement; two with children).

    >>> task = submit("greet", reference="42", data={"name": "Ada"})
    >>> progress("greet", "42")
    >>> run.go()
    >>> progress("greet", "42").state.value
    'processed'
    """
    rows = sql.run(PROGRESS, {"workflow": workflow, "reference": reference})
    if not rows:
        return None
    makers = [row[TASK_COLUMNS] for row in rows if row[UNDO_ACTION] == CHILDREN]
    children: dict[int, dict[str, int]] = defaultdict(dict)
    for step, state, count in sql.run(COUNTS, {"steps": makers}) if makers else ():
        children[step][state] = count
    return _progress(rows, children)


def snapshots(
    tasks: Collection[UUID],
    *,
    anyway: Collection[UUID] = (),
    ready: Mapping[int, Mapping[str, Any]] = {},
) -> list[Snapshot]:
    """Return the progress of locked tasks whose owners have an older version (one statement).

    `anyway` are included although their version may be unchanged. `ready` are waiting steps that are
    shown as pending, with these requests: a claim writes them at the end of its transaction.
    """
    parameters = {
        "tasks": [str(task) for task in tasks],
        "anyway": [str(task) for task in anyway],
        "ready": as_text({str(step): request for step, request in ready.items()}),
    }
    in_order = sorted(prepared.run(SNAPSHOTS, parameters), key=itemgetter(0, STEP_ID))
    return [
        Snapshot(task=task, version=version, progress=_progress([row[2:] for row in rows]))
        for (task, version), rows in groupby(in_order, key=itemgetter(0, 1))
    ]


def _progress(
    rows: Iterable[Sequence[Any]], children: Mapping[int, dict[str, int]] = {}
) -> Progress:
    """Return the progress of a task from its rows, one per step."""
    rows = list(rows)
    state, created_at, ended_at, overdue, undo_at, data, *_ = rows[0]
    steps = [
        dict(zip(STEP_COLUMNS, row[TASK_COLUMNS:], strict=True))
        for row in rows
        if row[TASK_COLUMNS] is not None
    ]
    return Progress(
        state=TaskState(state),
        created_at=created_at,
        ended_at=ended_at,
        overdue=overdue,
        undoable=undo_at is None and not _standing(steps),
        steps=tuple(
            StepProgress(
                **{name: step[name] for name in SHOWN},
                direction=Direction(step["direction"]),
                state=StepState(step["process_state"]),
                request=_json(step["request"]),
                result=_json(step["result"]),
                children=children.get(step["id"], {}),
            )
            for step in steps
        ),
        data=_json(data) or {},
    )


def _standing(steps: Iterable[Mapping[str, Any]]) -> Sequence[StepView]:
    """Return the steps that forbid an undo; few can. What an undo step took back forbids nothing."""
    return standing(
        [
            StepView(**{name: step[column] for name, column in JUDGED.items()}, **NOT_JUDGED)
            for step in steps
            if step["irreversible"] or step["direction"] == Direction.UNDO
        ]
    )


def _json(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)


def set_aside(workflow: str, reference: str) -> SetAsideReason | None:
    """Return why a submission is not processed; None if it waits, or is a task."""
    rows = sql.run(SET_ASIDE, {"workflow": workflow, "reference": reference})
    return SetAsideReason[rows[0][0]] if rows else None


READ = {"direction", "state", "request", "result", "children"}  # what is converted, or counted
SHOWN = StepProgress.__dataclass_fields__.keys() - READ  # as the columns have it
JUDGED = {  # what says whether a step was done, or may have been
    name: RENAMED.get(name, name)
    for name in (
        *("id", "name", "agent", "state", "attempt", "locked_by", "direction", "outcome"),
        *("in_doubt", "undo_action", "irreversible"),
    )
}
NOT_JUDGED: dict[str, Any] = {"task": None, "after": (), "request": {}, "result": None}
# Along task_of_parent
COUNTS = """
SELECT parent_id, state, count(*) FROM orchestration_task WHERE parent_id = ANY(%(steps)s::bigint[])
GROUP BY parent_id, state ORDER BY state
"""
STEP_COLUMNS = ["id", *sorted({*SHOWN, *JUDGED.values(), "request", "result"} - {"id"})]
TASK_COLUMNS = 6
UNDO_ACTION = TASK_COLUMNS + STEP_COLUMNS.index("undo_action")  # in a row of PROGRESS
STEP_ID = 2 + TASK_COLUMNS  # in a row of SNAPSHOTS, behind the task's id and version
# Plain SQL, as each refresh of a live page runs it, and building the queries took longer than running
# them. The input is long, so only the first row has it.
PROGRESS = f"""
SELECT t.state, t.created_at, t.ended_at, t.overdue, t.undo_at,
    CASE WHEN row_number() OVER (ORDER BY s.id) = 1 THEN t.data END,
    {", ".join(f"s.{name}" for name in STEP_COLUMNS)}
FROM orchestration_task t LEFT JOIN orchestration_step s ON s.task_id = t.id
WHERE t.workflow = %(workflow)s AND t.reference = %(reference)s
ORDER BY s.id
"""  # noqa: S608 - constant columns
WHEN_READY = {
    "process_state": "CASE WHEN %(ready)s::jsonb ? s.id::text THEN 'pending' ELSE s.process_state END",
    # no templates: each message would have them, and most orders skip some steps
    "request": """coalesce(%(ready)s::jsonb -> s.id::text,
        CASE WHEN s.process_state NOT IN ('waiting', 'skipped') THEN s.request ELSE '{}' END)""",
}
# The same for several tasks, limited to changed ones; in any order, as no index has theirs.
SNAPSHOTS = f"""
WITH news AS MATERIALIZED (
    SELECT * FROM (SELECT t.*, {FINGERPRINT} AS version FROM orchestration_task t
        WHERE t.id = ANY(%(tasks)s::uuid[])) AS t
    WHERE t.version <> t.owner_version OR t.id = ANY(%(anyway)s::uuid[])
)
SELECT t.id, t.version, t.state, t.created_at, t.ended_at, t.overdue, t.undo_at, NULL,
    {", ".join(WHEN_READY.get(name, f"s.{name}") for name in STEP_COLUMNS)}
FROM news t LEFT JOIN orchestration_step s ON s.task_id = t.id
"""  # noqa: S608 - constant columns
