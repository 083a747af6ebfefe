"""Short words for the engine's own verbs, so that tests say what they are about."""

from uuid import uuid4

from django.db import connection, transaction

from orchestration import api, registry
from orchestration.interface import requests
from orchestration.messages import Reply
from orchestration.models import Step, Task, TaskRequest, Worker
from orchestration.models.fields import DatabaseNow
from orchestration.progression import Refusal
from orchestration.transitions.claim import claim
from orchestration.transitions.create import NewTask, create
from orchestration.transitions.record import record


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
    """Ask for a step to be tried again, have that carried out, and return why not, if so."""
    request = uuid4()
    api.request_resubmit(workflow, reference, step, id=request, **asked)
    return carried_out(request)


def request_undo(workflow, reference, **asked) -> Refusal | None:
    """Ask for a task to be undone, have that carried out, and return why not, if so."""
    request = uuid4()
    api.request_undo(workflow, reference, id=request, **asked)
    return carried_out(request)


def carried_out(request) -> Refusal | None:
    requests.take(10)
    refusal = TaskRequest.objects.get(request=request, done_at__isnull=False).refusal
    return Refusal[refusal] if refusal else None


def irreversible(task):
    """Run a task to its end, of which the last step cannot be undone."""
    run_to_end(task)
    Step.objects.filter(task=task, name="again").update(irreversible="they heard it")
    return task


def in_error(task=None, outcome="rejected", **said) -> Step:
    """Return the first step of a task, in error."""
    task = task or new_task()
    (request,) = [request for request in claimed() if request.task == str(task.id)]
    record([reply_to(request, outcome, **said)])
    return step_of(task)


def staff() -> None:
    """Have a living worker on each agent's and the schedulers' queue: silence is the service's."""
    queues = [*registry.agents, "scheduler"]
    Worker.objects.bulk_create(
        [Worker(instance=f"{name}-0", queue=name, host="here", pid=1) for name in queues],
        ignore_conflicts=True,
    )
    Worker.objects.update(seen_at=DatabaseNow())  # however slow the test


def force(statement, parameters):
    """Write past the triggers, to put a row into any state."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(statement, parameters)
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")
