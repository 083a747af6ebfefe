"""System checks: mistakes in declarations are found when Django starts, not at three in the night."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from . import registry
from .workflow import Workflow


@register()
def check_workflows(**_: Any) -> list[CheckMessage]:
    """Check each workflow's steps, order, agents, actions and requests."""
    return [
        Error(f"workflow {workflow.name!r}: {problem}", id=identifier)
        for workflow in registry.workflows.values()
        for identifier, problem in _problems(workflow)
    ]


@register()
def check_queues(**_: Any) -> list[CheckMessage]:
    """Check that each agent and each receiver has a queue, so that a worker can serve it."""
    needed = [*registry.agents, *(f"status.{name}" for name in registry.receivers)]
    return [
        Error(
            f"there is no queue {name!r} in RQ_QUEUES",
            hint="Every agent has a queue of its own name, every application that is told the "
            "status of its tasks has status.<name>; each is served by `manage.py work <queue>`.",
            id="orchestration.E004",
        )
        for name in sorted(needed)
        if name not in settings.RQ_QUEUES
    ]


def _problems(workflow: Workflow) -> Iterable[tuple[str, str]]:
    for problem in workflow.problems():
        yield "orchestration.E001", problem
    for step in workflow.steps:
        agent = registry.agents.get(step.agent)
        if agent is None:
            near = registry.suggest(step.agent, registry.agents)
            yield "orchestration.E002", f"step {step.name!r} names agent {step.agent!r}{near}"
        elif step.action not in agent.actions():
            near = registry.suggest(step.action, agent.actions())
            yield (
                "orchestration.E003",
                f"step {step.name!r} names action {step.action!r} of {step.agent!r}{near}",
            )
