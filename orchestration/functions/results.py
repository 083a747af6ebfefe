"""Read the results of functions from the engine's tables, as Django's Tasks know them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.module_loading import import_string
from django_tasks.base import TaskError, TaskResult, TaskResultStatus
from django_tasks.utils import get_module_path

from ..agents.errors import Rejected, Transient, Unknown
from ..models import Attempt, Step, Submission, Task
from ..states import Direction, Outcome, StepState
from .function_task import PREFIX, FunctionTask

# of a failure that is not an exception of the function: a time-out, a worker that died
CLASSES = {Outcome.REJECTED: Rejected, Outcome.TRANSIENT: Transient}
FAILURES = (Outcome.REJECTED, Outcome.TRANSIENT, Outcome.UNKNOWN, Outcome.EXPIRED)


@dataclass(frozen=True, kw_only=True)
class CallRecord:
    """A call: of its submission, and once that was taken, of its step and attempts."""

    reference: str
    queue: str
    priority: int
    data: Mapping[str, Any]
    created_at: datetime
    status: TaskResultStatus
    step: Step | None = None
    attempts: Sequence[Attempt] = ()

    def as_result(self, alias: str) -> TaskResult[Any]:
        """Return it as Django's Tasks know it."""
        attempts = self.attempts
        tried = self.step.attempt if self.step else 0
        ended = self.step.ended_at if self.step else None
        begun = [attempt.started_at or attempt.dispatched_at for attempt in attempts]
        if self.step and self.status == TaskResultStatus.RUNNING and self.step.dispatched_at:
            begun.append(self.step.dispatched_at)
        result: TaskResult[Any] = TaskResult(
            task=self._task(alias),
            id=self.reference,
            status=self.status,
            enqueued_at=self.created_at,
            started_at=begun[0] if begun else None,
            last_attempted_at=begun[-1] if begun else None,
            finished_at=ended if self.status in _FINAL else None,
            args=self.data["args"],
            kwargs=dict(self.data["kwargs"]),
            backend=alias,
            errors=[_error(attempt) for attempt in attempts if attempt.outcome in FAILURES],
            # it is not known yet which worker has the attempt under way
            worker_ids=[*(attempt.agent for attempt in attempts), *[""] * (tried - len(attempts))],
        )
        value = self.step.result.get("value") if self.step and self.step.result else None
        object.__setattr__(result, "_return_value", value)
        return result

    def _task(self, alias: str) -> FunctionTask[..., Any]:
        after = self.data.get("run_after")
        declared: FunctionTask[..., Any] = import_string(self.data["function"])
        return declared.using(
            priority=self.priority,
            queue_name=self.queue,
            run_after=parse_datetime(after) if after else None,
            backend=alias,
        )


_FINAL = {TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED}


def read(workflows: Sequence[str], reference: str) -> CallRecord | None:
    """Return a call by its id, in three statements at most; None if there is none."""
    task = Task.objects.filter(workflow__in=workflows, reference=reference).first()
    if task is None:
        return _waiting(workflows, reference)
    step = Step.objects.get(task=task, direction=Direction.DO)
    return CallRecord(
        reference=reference,
        queue=task.workflow.removeprefix(PREFIX),
        priority=task.priority,
        data=task.data,
        created_at=task.created_at,
        status=_status(step),
        step=step,
        attempts=list(Attempt.objects.filter(step=step).order_by("number")),
    )


def _waiting(workflows: Sequence[str], reference: str) -> CallRecord | None:
    """Return a call whose submission was not taken, or never will be."""
    rows = Submission.objects.filter(workflow__in=workflows, reference=reference)
    row = rows.order_by("id").last()
    if row is None:
        return None
    ready = row.refused_at is None
    return CallRecord(
        reference=reference,
        queue=row.workflow.removeprefix(PREFIX),
        priority=row.priority,
        data=row.data,
        created_at=row.created_at,
        status=TaskResultStatus.READY if ready else TaskResultStatus.FAILED,
    )


def _status(step: Step) -> TaskResultStatus:
    state = step.process_state
    if state == StepState.PROCESSED:
        return TaskResultStatus.SUCCESSFUL
    if state in {StepState.ERROR, StepState.CANCELLED}:
        return TaskResultStatus.FAILED
    if state == StepState.PROCESSING and step.locked_by is not None:
        return TaskResultStatus.RUNNING
    return TaskResultStatus.READY


def _error(attempt: Attempt) -> TaskError:
    """Return how an attempt failed; its traceback is in the log of its worker."""
    kind = attempt.error_code
    if "." not in kind:
        kind = get_module_path(CLASSES.get(Outcome(attempt.outcome), Unknown))
    text = f"{attempt.error_code or attempt.outcome}: {attempt.error_message}".strip(": ")
    return TaskError(exception_class_path=kind, traceback=text)
