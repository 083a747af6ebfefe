"""Declare an agent and a workflow for each queue of functions; found by itself as an app's `workflow`."""

from collections.abc import Iterator, Mapping
from typing import Any

from django_tasks import task_backends

from .. import registry
from ..payloads.placeholders import field
from ..workflow import Step, Workflow
from .agent import FunctionAgent
from .backend import WorkflowBackend
from .function_task import PREFIX

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


declare()
