"""Problems of a workflow: its steps, their order, and their inputs."""

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from ..agents.base import Agent
from ..registry import suggest
from ..workflows.step import Step
from ..workflows.workflow import Workflow
from . import children, conditions, steps, templates, waits
from .problem import Problem, in_name, shown


def problems(workflow: Workflow, agents: Mapping[str, type[Agent]]) -> list[Problem]:
    """Return what is wrong with a workflow and its calls; what is malformed hides what follows from it."""
    if malformed := list(_malformed(workflow)):
        return malformed
    returned = {step.name: steps.returned(step, agents) for step in workflow.steps}
    of_calls = [
        problem.of(steps.named(step), " ")
        for step in workflow.steps
        for of_step in (steps.calls(step, agents), steps.results(step, returned))
        for problem in of_step
    ]
    of_policies = [
        problem.of(steps.named(step))
        for step in workflow.steps
        for problem in steps.policy(step, agents)
    ]
    return own_problems(workflow) + of_calls + of_policies


def own_problems(workflow: Workflow) -> list[Problem]:
    """Return what is wrong with a workflow by itself, without a look at agents."""
    if malformed := list(_malformed(workflow)):
        return malformed
    unusable = [
        problem.of(steps.named(step), " ")
        for step in workflow.steps
        for problem in (*steps.kind(step), *waits.of_agent(step))
    ]
    unusable += _orderless(workflow)
    return unusable or list(_unavailable(workflow))


def is_malformed(workflow: Workflow) -> bool:
    """Return whether anything of a workflow is of another type than it has to be."""
    return any(_malformed(workflow))


def _malformed(workflow: Workflow) -> Iterable[Problem]:
    """Yield what is of another type than it has to be."""
    declared: Any = workflow.steps
    if isinstance(declared, str) or not isinstance(declared, Sequence):
        yield Problem("E001", f"steps is {shown(declared)}, not a list of steps")
        return
    days: Any = workflow.keep_days
    if not (days is None or (isinstance(days, int | float) and 1 <= days <= 36_500)):
        yield Problem("E001", f"its keep_days is {shown(days)}, not 1 to 36,500 days, or None")
    for problem in templates.not_data(workflow.result):
        yield problem._replace(text=f"its result {problem.text}")
    if not declared:
        yield Problem("E001", "it has no steps")
    for step in declared:
        if not isinstance(step, Step):
            yield Problem("E001", f"steps has {shown(step)}, not a Step")
            continue
        yield from in_name("step", step.name)
        for problem in steps.malformed(step):
            yield problem.of(steps.named(step))


def _orderless(workflow: Workflow) -> Iterable[Problem]:
    """Yield names that are declared twice, or that no step has."""
    names = [step.name for step in workflow.steps]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Problem("E001", f"step {name!r} is declared twice")
    for step in workflow.steps:
        for other in step.after:
            if other not in names:
                yield Problem(
                    "E001",
                    f"step {step.name!r} comes after {other!r}, which is not one of its "
                    f"steps{suggest(other, names)}",
                )


def _unavailable(workflow: Workflow) -> Iterable[Problem]:
    """Yield what is taken that need not be there by then."""
    order = {step.name: set(step.after) for step in workflow.steps}
    try:
        sequence = list(TopologicalSorter(order).static_order())
    except CycleError as error:
        circle = " → ".join(error.args[1])
        yield Problem("E001", f"its steps wait for each other in a circle: {circle}")
        return
    before: dict[str, set[str]] = {}
    for name in sequence:
        before[name] = order[name].union(*(before[other] for other in order[name]))
    yield from templates.of_card(workflow)
    yield from children.own_result(workflow)
    yield from templates.of_input(workflow)
    known = {step.name: step for step in workflow.steps}
    for step in workflow.steps:
        for problem in templates.of_step(step, before[step.name]):
            yield problem.of(steps.named(step))
        for problem in conditions.taken(step, known, before):
            yield problem.of(steps.named(step))
