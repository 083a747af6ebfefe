"""The engine's public face: what an application imports, and nothing else of it.

Declare a workflow in your app's `workflow.py`:

    from orchestration.api import HttpAgent, Step, Workflow, action, field, register, result

    class Greeter(HttpAgent):
        name = "greeter"
        base_url = "https://greetings.example"

        @action
        async def greet(self, call):
            return await self.post(call, "/greetings", body=call.payload, expect={"text": str})

    register(Greeter)
    register(Workflow(name="greet", steps=[
        Step(name="say_hello", agent="greeter", action="greet", request={"to": field("name")}),
        Step(name="say_it_again", agent="greeter", action="greet", after=["say_hello"],
             request={"to": result("say_hello", "text")}),
    ]))

Submit a task anywhere, inside your own transaction if you like, and look at it:

    submit("greet", reference="42", data={"name": "Ada"})
    progress("greet", "42").state
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from . import crashpoints, queues, registry
from .agents.base import Agent, Call, Rejected, Transient, Unknown, action
from .agents.http import HttpAgent
from .models import Step as StepRow
from .models import Submission, Task
from .models.inbox import StatusKind
from .states import StepState, TaskState
from .status import Status
from .workflow import Refused, Step, Submitted, Workflow, field, result

__all__ = [
    "Agent",
    "Call",
    "HttpAgent",
    "Progress",
    "Refused",
    "Rejected",
    "Status",
    "StatusKind",
    "Step",
    "StepProgress",
    "StepState",
    "Submitted",
    "TaskState",
    "Transient",
    "Unknown",
    "Workflow",
    "action",
    "field",
    "progress",
    "receive_status",
    "register",
    "result",
    "submit",
]


def register(thing: Workflow | type[Agent]) -> None:
    """Make a workflow or an agent known under its name; a later one replaces an earlier one."""
    if isinstance(thing, Workflow):
        registry.workflows[thing.name] = thing
    else:
        registry.agents[thing.name] = thing


def receive_status(application: str, receiver: Callable[[Sequence[Status]], None]) -> None:
    """Have `receiver` called with batches of status messages to `application`, in a transaction.

    Give the application's name as `reply_to` to `submit`, and `status.<name>` a queue and a worker.
    """
    registry.receivers[application] = receiver


def submit(
    workflow: str,
    *,
    reference: str,
    data: dict[str, Any],
    reply_to: str = "",
    priority: int = 0,
) -> None:
    """Post a task, durably, and ring for the submission process.

    `reference` is your own id for it (at most 100 characters): one task per workflow and reference,
    however often it is posted. Inside a transaction the task is posted when that commits. Redis
    need not be there: a supervisor rings again. Raises `LookupError` if nobody receives `reply_to`.
    """
    if reply_to:
        registry.get(registry.receivers, "receiver of status messages", reply_to)
    Submission.objects.bulk_create(
        [
            Submission(
                workflow=workflow,
                reference=reference,
                data=data,
                reply_to=reply_to,
                priority=priority,
            )
        ],
        ignore_conflicts=True,
    )
    transaction.on_commit(partial(crashpoints.reached, "web.after_commit_before_ring"))
    transaction.on_commit(partial(queues.try_to_ring, queues.SUBMISSION))


@dataclass(frozen=True, kw_only=True)
class StepProgress:
    """Where one step of a task stands."""

    name: str
    state: StepState
    attempt: int
    failure_count: int
    ended_at: datetime | None
    error_code: str
    error_message: str
    result: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a task stands; its steps in the order in which they are declared."""

    state: TaskState
    created_at: datetime
    ended_at: datetime | None
    overdue: bool
    steps: tuple[StepProgress, ...]


def progress(workflow: str, reference: str) -> Progress | None:
    """Return where a task stands, or None while no submission process has taken it (two queries)."""
    task = Task.objects.filter(workflow=workflow, reference=reference).first()
    if task is None:
        return None
    return Progress(
        state=TaskState(task.state),
        created_at=task.created_at,
        ended_at=task.ended_at,
        overdue=task.overdue,
        steps=tuple(_step_progress(step) for step in task.steps.order_by("id")),
    )


def _step_progress(step: StepRow) -> StepProgress:
    return StepProgress(
        name=step.name,
        state=StepState(step.process_state),
        attempt=step.attempt,
        failure_count=step.failure_count,
        ended_at=step.ended_at,
        error_code=step.error_code,
        error_message=step.error_message,
        result=step.result,
    )
