"""Turn durable submissions into application records *and* tasks, in one transaction (P19).

A batch normally succeeds as a whole. If a submission in it fails, the batch is rolled back and split, first
by workflow. A submission that its application refuses is set aside until a person acts. One that fails
for another reason is retried with backoff, as a deploy may be under way. Neither blocks the others: fresh
submissions and retries are separate lines, each with its own batch.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache, partial
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet

from . import conf, registry
from .applications import failed_submissions, repeated_postings
from .applications.repeated_postings import Earlier
from .cluster import crash_points
from .cluster.debounce import Pauses
from .database import batches, prepared, sql
from .database.sql import MANY, Among, Parameter, compiled
from .decisions.fairness import for_aged
from .models import Submission
from .models.fields import DatabaseNow, Unreadable, read_json
from .models.inbox import SUBMISSIONS
from .tracing import spans, switch
from .transitions.create import NewTask, create
from .workflows.workflow import Refused, Submitted, Workflow

# The lines and the order of each: fresh submissions, those of them that have waited long, and retries.
LONG_AGO = DatabaseNow() - timedelta(seconds=conf.AGED_AFTER_S)
DUE: Mapping[str, tuple[Q, Sequence[Any]]] = {
    "fresh": (SUBMISSIONS.fresh, SUBMISSIONS.in_order),
    "aged": (SUBMISSIONS.fresh & Q(created_at__lt=LONG_AGO), ("id",)),
    "retries": (SUBMISSIONS.retries, SUBMISSIONS.in_order),
}
LOOKED_AT = ("fresh", "retries")

TAKEN = "DELETE FROM orchestration_submission WHERE id = ANY(%(ids)s)"
COLUMNS = [field.attname for field in Submission._meta.concrete_fields]  # noqa: SLF001 - documented

_paused: Pauses[tuple[str, str]] = Pauses()  # lines and workflows whose submissions all fail here


def take(limit: int) -> int:
    """Turn submissions into tasks, up to `limit` of each line; return how many were handled.

    Fresh submissions come first, by priority, then fairly by turn. If more of them wait, a few that have
    waited long come with them, regardless of priority. Then retries, in the order of their times.
    """
    paused = {f"paused_{line}": _paused_in(line) for line in LOOKED_AT}
    ((fresh, retries),) = prepared.run(_waiting(), paused | {"limit": 1})
    done = _take_from("fresh", limit) if fresh else 0
    if done >= limit:
        done += _take_from("aged", for_aged(limit, conf.AGED_SHARE))
    return done + (_take_from("retries", limit) if retries else 0)


def _take_from(line: str, limit: int) -> int:
    crash_points.reached("submission.before_transaction")
    return batches.Loop(
        group=SUBMISSIONS.group,
        due=partial(_due, line),
        first=partial(_take_first, line),
        deal=_take,
        fail=failed_submissions.fail,
        pause=lambda name: _paused.begin((line, name), conf.FAILING_WORKFLOW_PAUSE_S),
        refusal=Refused,
    ).take(limit)


def _due(line: str) -> QuerySet[Submission]:
    """Return the submissions of a line that are due and not paused, in its order."""
    return _of_line(line).exclude(workflow__in=_paused_in(line))


def _paused_in(line: str) -> list[str]:
    return [name for where, name in _paused if where == line and _paused.of((where, name))]


def _of_line(line: str) -> QuerySet[Submission]:
    which, order = DUE[line]
    return Submission.objects.filter(which).order_by(*order)


def _first(line: str) -> QuerySet[Submission]:
    """Return the first submissions of a line, for a statement that is compiled once."""
    paused = Parameter(f"paused_{line}", "text[]")
    return _of_line(line).exclude(Among(F("workflow"), paused))[:MANY]


@cache
def _waiting() -> str:
    """Return the statement that says for each line of `LOOKED_AT` whether some wait."""
    lines = (compiled(_first(line).values_list("id")) for line in LOOKED_AT)
    return f"SELECT {', '.join(f'EXISTS ({line})' for line in lines)}"


@cache
def _locking(line: str) -> str:
    """Return the statement that locks the first of a line, each with what is known of its reference."""
    rows = sql.lock(_first(line))
    return compiled(rows.values_list(*COLUMNS, *repeated_postings.columns()))


@transaction.atomic
def _take_first(line: str, limit: int) -> int:
    """Take the first of a line, as `_take` does: without a queryset, which takes longer to build.

    A task that another process has just made of the same reference may not be seen: it cannot be made
    twice (`task_once`), and the batch is split.
    """
    rows = prepared.run(_locking(line), {f"paused_{line}": _paused_in(line), "limit": limit})
    submissions = [Submission.from_db(connection.alias, COLUMNS, _read(row)) for row in rows]
    known = {
        _named(submission): before
        for submission, (*_, task, removed) in zip(submissions, rows, strict=True)
        if (before := repeated_postings.earlier(task, removed)) is not None
    }
    return _accept(submissions, known)


def _read(row: tuple[Any, ...]) -> list[Any]:
    """Return a row as a queryset's fields read it: JSON comes as text."""
    return [read_json(row[at]) if name == "data" else row[at] for at, name in enumerate(COLUMNS)]


@transaction.atomic
def _take(submissions_due: QuerySet[Submission]) -> int:
    submissions = list(sql.lock(submissions_due))
    return _accept(
        submissions, repeated_postings.known([submission.id for submission in submissions])
    )


@transaction.atomic
def adopt(workflow: str, reference: str, task: UUID) -> bool:
    """Take a submission under the id of the task that it was before a restore: its keys stay the same.

    Return whether there was such a submission.
    """
    rows = Submission.objects.filter(SUBMISSIONS.open, workflow=workflow, reference=reference)
    submissions = list(rows.select_for_update())
    return bool(
        _accept(
            submissions,
            repeated_postings.known([submission.id for submission in submissions]),
            task,
        )
    )


def _accept(
    submissions: Sequence[Submission],
    known: Mapping[tuple[str, str], Earlier],
    task: UUID | None = None,
) -> int:
    """Create tasks of new submissions and delete them all; a repeated one changes nothing.

    `known` is what is known of references that are taken, by workflow and reference.
    `task` is the id of the task to be, if it had one before.
    """
    fresh: dict[str, list[Submission]] = defaultdict(list)
    repeated: list[tuple[Earlier, object]] = []
    for submission in submissions:
        before = known.get(_named(submission))
        if before is None:
            fresh[submission.workflow].append(submission)
        else:
            repeated.append((before, _public(submission)))
    repeated_postings.require_same(repeated)
    unknown: list[int] = []
    for name in sorted(fresh.keys() - registry.workflows.keys()):
        unknown += failed_submissions.put_off_unknown(name, fresh.pop(name))
    taken = [submission for submission in submissions if submission.id not in unknown]
    also = [prepared.Part(TAKEN, {"ids": [submission.id for submission in taken]})]
    for name, batch in sorted(fresh.items()):
        _record(registry.workflows[name], batch, also, task)
        also = []
    if also:
        prepared.run_all(also)
    crash_points.reached("submission.before_commit", taken)
    transaction.on_commit(lambda: crash_points.reached("submission.after_commit", taken))
    return len(submissions)


def _record(
    workflow: Workflow,
    batch: Sequence[Submission],
    also: Sequence[prepared.Part],
    task: UUID | None,
) -> None:
    for submission in batch:
        if isinstance(submission.data, Unreadable):
            raise Refused(f"its data cannot be read: {submission.data}")
        if not isinstance(submission.data, dict):
            raise Refused("its data is not a JSON object")
    workflow.record(
        [Submitted(reference=submission.reference, data=submission.data) for submission in batch]
    )
    create([_as_task(submission, task) for submission in batch], also)
    if switch.ON:
        transaction.on_commit(partial(_trace, batch), robust=True)


def _trace(batch: Sequence[Submission]) -> None:
    for submission in batch:
        task = spans.Named(workflow=submission.workflow, reference=submission.reference)
        spans.taken(task, submission.created_at.timestamp())


def _named(submission: Submission) -> tuple[str, str]:
    return submission.workflow, submission.reference


def _public(submission: Submission) -> Any:
    """Return the part of a submission's data that its task keeps."""
    workflow = registry.workflows.get(submission.workflow)
    return workflow.public(submission.data) if workflow else submission.data


def _as_task(submission: Submission, task: UUID | None) -> NewTask:
    return NewTask(
        id=task,
        workflow=submission.workflow,
        reference=submission.reference,
        data=_public(submission),
        reply_to=submission.reply_to,
        priority=submission.priority,
        fairness_key=submission.fairness_key,
        about_workflow=submission.about_workflow,
        about_reference=submission.about_reference,
    )
