"""The agent of a queue of functions: it calls them in its worker's process."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections
from django.utils.module_loading import import_string
from django_tasks.base import TaskContext, TaskResult, TaskResultStatus
from django_tasks.signals import task_finished, task_started
from django_tasks.utils import get_module_path, normalize_json

from ..agents.actions import Call, Result, action
from ..agents.base import Agent
from ..agents.errors import Fault, Rejected, Transient, Unknown
from ..database import clock
from ..states import Health
from .function_task import DECLARED, FunctionTask

logger = logging.getLogger(__name__)

MAY_HAVE_RUN = "may_have_run"
CALL: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "function": {"type": "string"}, "args": {"type": "array"}, "kwargs": {"type": "object"}
    },
    "required": ["function", "args", "kwargs"],
    "additionalProperties": False,
}  # fmt: skip
RETURNED: Mapping[str, Any] = {
    "type": "object", "properties": {"value": {}}, "required": ["value"],
    "additionalProperties": False,
}  # fmt: skip


class FunctionAgent(Agent):
    """Calls functions: coroutines in its event loop, others in threads, `slots` at once.

    What a function raises decides: a fault of `orchestration.api` means what it says. Any other exception
    is a definite failure, or an unknown outcome if the function is idempotent. A function that is not is
    never called again while an earlier call may have had an effect: a person decides.
    """

    slots = 10
    policy = {
        "time_allowed": 600.0,
        "call_timeout": 590.0,
        "tries": 1,
        "key_memory": None,
        # as many as one worker begins at once: what waits for its worker beyond its time is in doubt
        "window": slots,
    }

    def __init__(self, instance: str = "agent") -> None:
        super().__init__(instance)
        self._threads: ThreadPoolExecutor | None = None

    @action(accepts=CALL, returns=RETURNED, guarded=("function", "args", "kwargs"))
    async def call_function(self, call: Call) -> Result:
        """Call {function, args, kwargs}; returns {value}."""
        task = _task(str(call.payload["function"]))
        if call.in_doubt and not task.idempotent:
            what = "An earlier call may have run, wholly or in part. Find out; then retry or record it."
            raise Rejected(MAY_HAVE_RUN, what, in_doubt=True)
        result = self._result(task, call)
        task_started.send(type(task.get_backend()), task_result=result)
        args = [TaskContext(task_result=result)] if task.takes_context else []
        called = partial(task.func, *args, *call.payload["args"], **call.payload["kwargs"])
        try:
            value = await (called() if iscoroutinefunction(task.func) else self._apart(called))
            value = normalize_json(value)
        except Fault:
            raise
        except (Exception, SystemExit) as error:
            logger.exception("%s failed", task.module_path)
            kind, text = get_module_path(type(error)), str(error)
            if task.idempotent:
                raise Unknown(kind, text, health=Health.NOTHING) from error
            _finish(result, TaskResultStatus.FAILED)
            raise Rejected(kind, text) from error
        _finish(result, TaskResultStatus.SUCCESSFUL)
        return {"value": value}

    async def _apart(self, called: Callable[[], Any]) -> Any:
        """Call a function in a thread with database connections of its own."""
        if self._threads is None:
            slots = settings.AGENT_SLOTS.get(self.name, self.slots)
            self._threads = ThreadPoolExecutor(slots, thread_name_prefix=self.name)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, copy_context().run, _in_thread, called)

    async def close(self) -> None:
        """Take no more calls; those under way go on until they end."""
        if self._threads is not None:
            self._threads.shutdown(wait=False)

    def _result(self, task: FunctionTask[..., Any], call: Call) -> TaskResult[Any]:
        """Return what a function and receivers of signals see of this attempt."""
        now = clock.utc_now()
        return TaskResult(
            task=task,
            id=call.reference,
            status=TaskResultStatus.RUNNING,
            enqueued_at=None,
            started_at=now,
            last_attempted_at=now,
            finished_at=None,
            args=call.payload["args"],
            kwargs=call.payload["kwargs"],
            backend=task.backend,
            errors=[],
            worker_ids=[*[""] * (call.attempt - 1), self.instance],
        )


class InOneThread(FunctionAgent):
    """Calls functions in the thread of the test, which has its transaction."""

    async def _apart(self, called: Callable[[], Any]) -> Any:
        return await sync_to_async(called, thread_sensitive=True)()


FunctionAgent.in_tests = InOneThread


def _in_thread(called: Callable[[], Any]) -> Any:
    close_old_connections()
    try:
        return called()
    except StopIteration as error:  # which a future cannot hold
        raise RuntimeError(f"StopIteration: {error}") from error
    finally:
        close_old_connections()


def _task(path: str) -> FunctionTask[..., Any]:
    """Return the decorated function of a name; only such are called.

    One that no module has declared yet is where the application that enqueued it has it.
    """
    if path in DECLARED:
        return DECLARED[path]
    try:
        function = import_string(path)
    except Exception as error:  # a module may raise anything
        raise Transient("no_such_function", f"{path}: {error}", health=Health.NOTHING) from error
    if not isinstance(function, FunctionTask):
        raise Rejected("no_such_function", f"{path} is not a task of this backend")
    return function


def _finish(result: TaskResult[Any], status: TaskResultStatus) -> None:
    """Have receivers of signals know that an attempt was the last one."""
    object.__setattr__(result, "status", status)
    object.__setattr__(result, "finished_at", clock.utc_now())
    task_finished.send(type(result.task.get_backend()), task_result=result)
