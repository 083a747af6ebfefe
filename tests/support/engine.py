"""Create, claim, answer and sweep tasks of the greeting workflow, without a running stack."""

import random
from contextlib import contextmanager
from dataclasses import replace
from uuid import uuid4

from django.db import DatabaseError, connection, transaction

from orchestration import api, registry, supervisor, task_requests
from orchestration.cluster import leader_election
from orchestration.cluster.duty import Done
from orchestration.cluster.leader_memory import Memory
from orchestration.database import sql
from orchestration.decisions.progress import Refusal
from orchestration.housekeeping import housekeeper
from orchestration.messaging import queues
from orchestration.messaging.messages import Reply, Request
from orchestration.models import Policy, Step, Task, TaskRequest, Worker
from orchestration.models.fields import DatabaseNow
from orchestration.supervision.watch import Watch
from orchestration.transitions.claim import claim
from orchestration.transitions.create import NewTask, create
from orchestration.transitions.replies import record
from orchestration.workers import scheduler_duties


def new_task(reference=None, *, workflow="greet", data=None, reply_to="", priority=0) -> Task:
    with transaction.atomic():
        (created,) = create(
            [
                NewTask(
                    workflow=workflow,
                    reference=reference or uuid4().hex,
                    data={"name": "Ada"} if data is None else data,
                    reply_to=reply_to,
                    priority=priority,
                )
            ]
        )
    return Task.objects.get(id=created)


def claimed(by="scheduler-1", agent="greeter"):
    """Claim for one agent; return the requests."""
    return claim([agent], by).requests.get(agent, [])


def sent(agent="greeter"):
    """Take the requests in an agent's inbox."""
    return [Request.parse(raw) for raw in queues.take(agent, 1000) if raw != queues.LOOK]


def claimed_beside_others(by="scheduler-1", agent="greeter"):
    """Claim for one agent; return nothing if other sessions have what it takes."""
    try:
        return claimed(by, agent)
    except (DatabaseError, sql.ConcurrentUpdate) as error:
        if sql.is_busy(error):
            return []
        raise


def reply_to(request, outcome="done", **fields) -> Reply:
    known = {
        "step": request.step,
        "task": request.task,
        "attempt": request.attempt,
        "outcome": outcome,
        "result": {"id": "g1"} if outcome == "done" else {},
        "code": "" if outcome == "done" else f"{outcome}_code",
        "message": "" if outcome == "done" else f"it was {outcome}",
        "tries": 1,
        "started": 1.0,
        "ended": 2.0,
        "by": "agent-1",
        "generation": request.generation,
        "dispatch": request.dispatch,
    }
    return Reply(**{**known, **fields})


def step_of(task, name="hello") -> Step:
    return Step.objects.get(task=task, name=name, direction="do")


def states(task) -> dict[str, str]:
    return dict(Step.objects.filter(task=task).values_list("name", "process_state"))


def run_to_end(task) -> None:
    """Answer "done" to every request until nothing is left to claim."""
    while requests := claimed():
        record([reply_to(request) for request in requests])
    task.refresh_from_db()


def request_resubmit(workflow, reference, step, **asked) -> Refusal | None:
    """Resubmit a step; return the refusal, or None."""
    request = uuid4()
    api.request_resubmit(workflow, reference, step, id=request, **asked)
    return carried_out(request)


def request_undo(workflow, reference, **asked) -> Refusal | None:
    """Undo a task; return the refusal, or None."""
    request = uuid4()
    api.request_undo(workflow, reference, id=request, **asked)
    return carried_out(request)


def carried_out(request) -> Refusal | None:
    task_requests.take(10)
    refusal = TaskRequest.objects.get(request=request, done_at__isnull=False).refusal
    return Refusal[refusal] if refusal else None


def irreversible(task):
    """Run a task to its end whose last step cannot be undone."""
    run_to_end(task)
    Step.objects.filter(task=task, name="again").update(irreversible="they heard it")
    return task


def in_error(task=None, outcome="rejected", **fields) -> Step:
    """Put the first step of a task in error; return the step."""
    task = task or new_task()
    (request,) = [request for request in claimed() if request.task == task.id]
    record([reply_to(request, outcome, **fields)])
    return step_of(task)


def staff() -> None:
    """Register live workers on every queue, so that no agent counts as unserved."""
    queues = [*registry.agents, "scheduler"]
    Worker.objects.bulk_create(
        [Worker(instance=f"{name}-0", queue=name, host="here", pid=1) for name in queues],
        ignore_conflicts=True,
    )
    Worker.objects.update(seen_at=DatabaseNow())  # however slow the test


def postpone_retries() -> None:
    """Let no retry fall due by itself, however slow the test."""
    Policy.objects.update(backoff=600, backoff_cap=600)


@contextmanager
def without_triggers():
    """Disable the triggers in this context, to put a row into any state."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        yield
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")


def force(statement, parameters):
    """Execute a statement without triggers."""
    with without_triggers(), connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def rested_memory() -> Memory:
    """Return a leader's memory by which no interval of a duty is over."""
    memory = Memory()
    duties = (*supervisor.DUTIES, *housekeeper.all_duties())
    memory.next_at = {duty.name: float("inf") for duty in duties}
    return memory


def sweep(leadership, chance=random.random, memory=None):
    """Run a sweep of a supervisor, the undos that it requests, and a sweep of a housekeeper.

    All that each can do is done; what fails is raised at the end.
    """
    memory = memory or Memory()
    house = vars(memory).setdefault("house", Memory())
    failed, done = [], Done()
    try:
        done.update(supervisor.sweep(leadership, memory, chance=chance))
    except ExceptionGroup as error:
        failed.append(error)
    scheduler_duties.run()
    try:
        done.update(housekeeper.sweep(housekeeping(leadership), house))
    except ExceptionGroup as error:
        failed.append(error)
    if failed:
        raise failed[0]
    return done


def housekeeping(leadership):
    """Return a housekeeper's leadership for a supervisor's, acquired if that one was."""
    if leadership.name == leader_election.HOUSEKEEPER:
        return leadership
    if leadership.at is None:
        return replace(leadership, name=leader_election.HOUSEKEEPER)
    return leader_election.acquire(leadership.holder, name=leader_election.HOUSEKEEPER)


def watch_of(me, name=leader_election.SUPERVISOR):
    """Return the watch of a supervisor, or of another process that elects a leader."""
    sweeps = {
        leader_election.SUPERVISOR: supervisor.sweep,
        leader_election.HOUSEKEEPER: housekeeper.sweep,
    }
    return Watch(me, name=name, sweep=sweeps[name])
