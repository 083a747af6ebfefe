"""Declare an agent and a workflow for each queue of functions; found by itself as an app's `workflow`."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.module_loading import autodiscover_modules
from django_tasks import task_backends

from .. import registry
from ..payloads.placeholders import field
from ..workflows.step import Step
from ..workflows.workflow import Workflow
from .agent import FunctionAgent
from .backend import WorkflowBackend
from .function_task import DECLARED, PREFIX

DAY = 86_400.0
STEP = "call"
PLACE = f"the engine's {__name__}"


def queues() -> Iterator[str]:
    """Yield the queues of the backends in TASKS that are the engine's."""
    for alias in task_backends.settings:
        backend = task_backends[alias]
        if isinstance(backend, WorkflowBackend):
            yield from sorted(backend.queues)


def declare() -> None:
    """Declare the agents and workflows of the queues in TASKS."""
    for queue in dict.fromkeys(queues()):
        name = PREFIX + queue
        agent = type("Functions", (FunctionAgent,), {"name": name})
        registry.add(registry.agents, "agent", name, agent, PLACE)
        registry.add(registry.workflows, "workflow", name, _workflow(name), PLACE)


def _workflow(name: str) -> Workflow:
    return Workflow(
        name=name,
        time_allowed=DAY,
        run_after=field("run_after"),
        label=_called,
        refuse_by_hand=_refuse_by_hand,
        steps=[
            Step(
                name=STEP,
                agent=name,
                action=FunctionAgent.call_function.__name__,
                request={name: field(name) for name in ("function", "args", "kwargs")},
                irreversible="a function cannot be taken back",
            )
        ],
    )


def _called(data: Mapping[str, Any]) -> str:
    """Return what operators call a task: the function, without its package."""
    return ".".join(str(data.get("function", "")).split(".")[-2:])


def _refuse_by_hand(data: Mapping[str, Any]) -> str:
    """Return why an operator must not have a function called; only those that say so may be."""
    task = DECLARED.get(str(data.get("function", "")))
    if task is not None and task.by_hand:
        return ""
    return (
        "Only a function with @task(by_hand=True), of a module that is loaded, is started by hand."
    )


autodiscover_modules("tasks")  # what they declare is known before anybody names it
declare()
