"""The backend for Django's Tasks: enqueueing submits a task of the engine.

Imported where a function is decorated, which may be before the models are loaded.
"""

from typing import Any, ParamSpec, TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from django_tasks.backends.base import BaseTaskBackend
from django_tasks.base import Task, TaskResult, TaskResultStatus
from django_tasks.exceptions import TaskResultDoesNotExist
from django_tasks.signals import task_enqueued
from django_tasks.utils import get_random_id

from ..decisions.fairness import LONGEST_KEY
from .function_task import PREFIX, FunctionTask

P = ParamSpec("P")
T = TypeVar("T")


class WorkflowBackend(BaseTaskBackend):
    """Runs functions as tasks of the engine: `QUEUES` names the queues, each an agent "tasks.<queue>"."""

    task_class = FunctionTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        if not self.queues:
            raise ImproperlyConfigured(f"TASKS: {alias!r} needs QUEUES: each is an agent's")

    def enqueue(
        self,
        task: Task[P, T],
        args: Any,
        kwargs: Any,
    ) -> TaskResult[T]:
        """Submit a call, in the caller's transaction if there is one."""
        from ..applications.submissions import Posting, submit_many

        self.validate_task(task)
        result: TaskResult[T] = TaskResult(
            task=task,
            id=get_random_id(),
            status=TaskResultStatus.READY,
            enqueued_at=timezone.now(),
            started_at=None,
            last_attempted_at=None,
            finished_at=None,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        after = task.run_after
        posting = Posting(
            workflow=PREFIX + task.queue_name,
            reference=result.id,
            priority=task.priority,
            fairness_key=task.module_path[:LONGEST_KEY],  # functions take turns
            data={
                "function": task.module_path,
                "args": result.args,
                "kwargs": result.kwargs,
                "run_after": after and timezone.localtime(after).isoformat(),
            },
        )
        submit_many([posting])
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult[Any]:
        """Return the result of a call; raise `TaskResultDoesNotExist` if there is none, or no more."""
        from . import results

        call = results.read([PREFIX + queue for queue in sorted(self.queues)], result_id)
        if call is None:
            raise TaskResultDoesNotExist(result_id)
        return call.as_result(self.alias)
