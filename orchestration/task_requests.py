"""Carry out applications' requests about their tasks, each exactly once (P18).

A request is posted like a submission. It runs after the submission of its task, also where that is set aside
until a person acts, and after earlier requests about the same task, by the same transitions that operators
use. The application's own writes are committed with it, or not at all. A request that fails is retried with
backoff; one that the application refuses is set aside until a person acts. Neither blocks requests about
other tasks.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import BooleanField, Exists, Max, OuterRef, QuerySet
from django.db.models.expressions import RawSQL

from . import conf, registry
from .alerting.failures import fail
from .applications import status_messages
from .database import batches, prepared, sql
from .database.lane import Problem
from .database.sql import MANY, compiled
from .decisions.input_change import TakenBy
from .decisions.progress import Refusal
from .messaging import queues
from .models import StatusMessage, Submission, Task, TaskRequest
from .models.inbox import SUBMISSIONS
from .models.request import REQUESTS, RequestedAct, waits_for_person
from .requested_acts import Answer, carry_out, changed_data
from .transitions import external_ids
from .workflows.workflow import Accepted, Workflow

# As many tries have found no worker with the workflow, for some two minutes, when it counts as gone and not
# as one that a deploy has not brought yet: then there is no code of the application to call.
UNKNOWN_TRIES = conf.ALERT_AFTER_FAILURES - 1
WAITS = waits_for_person("orchestration_taskrequest")

# Locked tasks of requests, by the requests' ids; index task_once.
TASKS = """
SELECT r.id, t.id::text
FROM unnest(%(ids)s::bigint[], %(workflows)s::text[], %(references)s::text[]) AS r (id, workflow, reference)
JOIN orchestration_task t ON t.workflow = r.workflow AND t.reference = r.reference
"""
# Marks the messages of the transaction that carries out requests, by their ids after `last`.
NAME = """
UPDATE orchestration_statusmessage m SET detail = m.detail || jsonb_build_object('request', r.request)
FROM unnest(%(requests)s::text[], %(tasks)s::uuid[]) AS r (request, task)
WHERE m.task_id = r.task AND m.id > %(last)s
"""
DONE = """
UPDATE orchestration_taskrequest q SET done_at = clock_timestamp(), refusal = r.refusal, problem = '',
    reason = ''
FROM unnest(%(ids)s::bigint[], %(refusals)s::text[]) AS r (id, refusal) WHERE q.id = r.id
"""


class Taken(NamedTuple):
    """How many requests were handled; `left` are due, and others have locked their rows or tasks."""

    done: int
    left: int


def take(limit: int) -> Taken:
    """Carry out up to `limit` requests: reports some at a time, each other one in its own transaction."""
    due = prepared.run(_first(), {"limit": limit})
    reports = [number for number, what in due if what == RequestedAct.COMPLETE]
    others = [number for number, what in due if what != RequestedAct.COMPLETE]
    size = conf.REPORTS_AT_A_TIME
    parts = [reports[start : start + size] for start in range(0, len(reports), size)]
    parts += [[number] for number in others]
    done = sum(batches.bisect(part, _deal_unless_busy, _fail, patience=limit) for part in parts)
    return Taken(done=done, left=len(due) - done)


def _deal_unless_busy(ids: Sequence[int]) -> int:
    try:
        return _deal(ids)
    except Exception as error:
        if sql.is_busy(error) and len(ids) == 1:
            return 0  # a later look finds it
        raise


@cache
def _first() -> str:
    """Return the statement for the first that are due, and what they ask for; it is compiled once."""
    return compiled(_due().values_list("id", "what")[:MANY])


def _due() -> QuerySet[TaskRequest]:
    """Return the due requests that are first for their task, in the order of `request_due`."""
    about = {"workflow": OuterRef("workflow"), "reference": OuterRef("reference")}
    before = TaskRequest.objects.filter(REQUESTS.open, **about, id__lt=OuterRef("id"))
    submission = Submission.objects.filter(SUBMISSIONS.open, **about)
    return (
        TaskRequest.objects.filter(REQUESTS.due)
        .exclude(Exists(before))
        .exclude(Exists(submission))
        .exclude(RawSQL(WAITS, (), BooleanField()))  # noqa: S611 - constants of our own
        .order_by(*REQUESTS.in_order)
    )


@transaction.atomic
def _deal(ids: Sequence[int]) -> int:
    """Carry out requests, and notify their applications of refusals too; skip what others have locked."""
    locked = list(sql.lock(_due().filter(id__in=ids)))
    unnamed = [request for request in locked if request.agent and not request.workflow]
    external_ids.find_steps(unnamed)  # these are due once more, in the lines of their tasks
    requests = [request for request in locked if request not in unnamed]
    workflows = {request.id: _workflow(request) for request in requests}
    tasks = _lock_tasks(requests)
    requests = [request for request in requests if request.id in tasks]
    last = StatusMessage.objects.aggregate(last=Max("id", default=0))["last"]
    answers = carry_out(requests, tasks, workflows)
    _notify(requests, tasks, workflows, answers, last)
    return len(unnamed) + len(requests)


def _lock_tasks(requests: Sequence[TaskRequest]) -> dict[int, UUID | None]:
    """Lock the tasks of requests; return them by the requests' ids, but for those that others have locked."""
    about = {
        "ids": [request.id for request in requests],
        "workflows": [request.workflow for request in requests],
        "references": [request.reference for request in requests],
    }
    known = {number: UUID(task) for number, task in sql.run(TASKS, about)}
    rows = Task.objects.filter(id__in=known.values()).order_by("id")
    locked = {None, *sql.lock(rows, no_key=True).values_list("id", flat=True)}
    tasks = {request.id: known.get(request.id) for request in requests}
    return {number: task for number, task in tasks.items() if task in locked}


def _notify(
    requests: Sequence[TaskRequest],
    tasks: Mapping[int, UUID | None],
    workflows: Mapping[int, Workflow | None],
    answers: Mapping[int, Answer],
    last: int,
) -> None:
    """Write what became of requests, for their applications too, whose messages have ids after `last`."""
    accepted = [request for request in requests if answers[request.id] is None]
    names = {
        "requests": [str(request.request) for request in accepted],
        "tasks": [str(tasks[request.id]) for request in accepted],
    }
    sql.run(NAME, {**names, "last": last})
    of_workflow = defaultdict(list)
    for request in accepted:
        of_workflow[request.workflow].append(request)
    for of_same in of_workflow.values():
        if workflow := workflows[of_same[0].id]:
            workflow.accepted([_as_accepted(request) for request in of_same])
    refusals: dict[int, str] = {}
    for request in requests:
        answer = answers[request.id]
        refusal = Refusal.TAKEN if isinstance(answer, TakenBy) else answer
        if refusal:
            more = {"steps": list(answer.steps)} if isinstance(answer, TakenBy) else {}
            status_messages.write_refusal(request, tasks[request.id], refusal, **more)
        refusals[request.id] = refusal.name if refusal else ""
    sql.run(DONE, {"ids": list(refusals), "refusals": list(refusals.values())})
    receivers = {request.reply_to for request in requests}
    receivers |= {status_messages.owner_of(request) for request in requests}
    received = map(status_messages.queue_of, receivers & registry.receivers.keys())
    queues.ring_after_commit(queues.SCHEDULER, *received)


def _workflow(request: TaskRequest) -> Workflow | None:
    """Return the workflow of a request, or None for one that is gone; raise `NotRegistered` before."""
    if request.problem == Problem.UNKNOWN and request.tries >= UNKNOWN_TRIES:
        return registry.workflows.get(request.workflow)
    return registry.get(registry.workflows, "workflow", request.workflow)


def _as_accepted(request: TaskRequest) -> Accepted:
    return Accepted(
        reference=request.reference,
        id=request.request,
        what=request.what,
        step=request.step,
        note=request.note,
        data=changed_data(request) or {},
    )


def _fail(number: int, error: Exception) -> None:
    """Set a refused request aside; postpone it after any other failure."""
    unknown = isinstance(error, registry.NotRegistered)
    fail(REQUESTS, [number], error, problem=Problem.UNKNOWN if unknown else Problem.FAILING)
