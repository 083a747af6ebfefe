"""System checks: find mistakes in declarations when Django starts."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from . import registry
from .monitoring import monitors
from .states import LOCAL
from .workflow import UNDECLARED, Step, Workflow

TAG = "orchestration"  # workers and supervisors run only these checks, and do not load the pages

HINTS = {
    "orchestration.E005": "undo= names an action of the same agent, and undo_request= what it is "
    "sent; or irreversible= says why it cannot be undone; or undo=None: there is nothing to undo.",
}


@register(TAG)
def check_workflows(**_: Any) -> list[CheckMessage]:
    """Check each workflow's steps, order, agents, actions and requests."""
    return [
        Error(f"workflow {workflow.name!r}: {problem}", hint=HINTS.get(identifier), id=identifier)
        for workflow in registry.workflows.values()
        for identifier, problem in _problems(workflow)
    ]


@register(TAG)
def check_queues(**_: Any) -> list[CheckMessage]:
    """Check that each queue of the engine is configured, so that a worker can serve it."""
    return [
        Error(
            f"the queue {name!r} is missing in RQ_QUEUES",
            hint="RQ_QUEUES has the engine's own queues, one named after each agent, and "
            "status.<name> for each receiver of status messages; `manage.py work` serves them.",
            id="orchestration.E004",
        )
        for name in sorted(monitors.needed_queues())
        if name not in settings.RQ_QUEUES
    ]


@register(TAG)
def check_names(**_: Any) -> list[CheckMessage]:
    """Check that names fit into their columns: otherwise a worker could not report itself."""
    longest: list[tuple[str, Iterable[str], int]] = [
        ("agent", registry.agents, 60),
        ("workflow", registry.workflows, 60),
        ("receiver of status messages", registry.receivers, 60),
        ("queue", settings.RQ_QUEUES, 100),
    ]
    return [
        Error(
            f"the name of the {kind} {name!r} has {len(name)} characters; at most {limit} fit",
            id="orchestration.E006",
        )
        for kind, names, limit in longest
        for name in sorted(names)
        if len(name) > limit
    ]


@register(TAG)
def check_guarded_fields(**_: Any) -> list[CheckMessage]:
    """Check that guarded fields are fields of their action: a mistyped one would guard nothing."""
    return [
        Error(
            f"action {name!r} of {agent.name!r} guards {field!r}, which it does not accept",
            hint="guarded= names fields of accepts=.",
            id="orchestration.E020",
        )
        for agent in registry.agents.values()
        for name, action in agent.actions().items()
        for field in action.guarded
        if field not in (action.accepts or {}).get("properties", [field])
    ]


def _problems(workflow: Workflow) -> Iterable[tuple[str, str]]:
    for problem in workflow.problems():
        yield "orchestration.E001", problem
    for step in workflow.steps:
        if step.agent == LOCAL:
            continue
        agent = registry.agents.get(step.agent)
        if agent is None:
            near = registry.suggest(step.agent, registry.agents)
            yield "orchestration.E002", f"step {step.name!r} names agent {step.agent!r}{near}"
        else:
            for name in (step.action, step.undo):
                if name not in agent.actions() and name not in {None, UNDECLARED}:
                    near = registry.suggest(str(name), agent.actions())
                    yield (
                        "orchestration.E003",
                        f"step {step.name!r} names action {name!r} of {step.agent!r}{near}",
                    )
        for problem in _undo_problems(step):
            yield "orchestration.E005", problem


def _undo_problems(step: Step) -> Iterable[str]:
    """Yield the problems of a step's declaration of its undo."""
    if step.undo in {None, UNDECLARED}:
        if step.undo == UNDECLARED and not step.irreversible:
            yield f"step {step.name!r} does not say how it is undone"
        if step.undo_request:
            yield f"step {step.name!r} has an undo_request, but names no action to send it to"
    elif step.irreversible:
        yield f"step {step.name!r} is irreversible, but names the undo {step.undo!r} all the same"
