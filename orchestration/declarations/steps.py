"""Problems of a step: its own, and those with the action that it calls."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..agents.base import Agent
from ..registry import suggest
from ..states import LOCAL
from ..workflows.named import written
from ..workflows.step import UNDECLARED, Step
from . import children, conditions, first_values, templates, waits
from .problem import Problem, shown

HOW_TO_UNDO = (
    "undo= names an action of the same agent, and undo_request= what it is sent; or irreversible= says "
    "why it cannot be undone; or undo=None: there is nothing to undo."
)


def named(step: Step) -> str:
    """Return how a step is called at the beginning of a sentence."""
    return f"step {step.name!r}"


def malformed(step: Any) -> Iterable[Problem]:
    """Yield the fields of a step that are of another type than they have to be."""
    yield from _not_names(step)
    if isinstance(step.after, str) or not isinstance(step.after, Sequence):
        example = [step.after] if isinstance(step.after, str) else ["…"]
        yield Problem(
            "E001", f"after is {shown(step.after)}, not a list", f"Write after={example!r}."
        )
    else:
        for earlier in step.after:
            if not isinstance(earlier, str):
                yield Problem("E001", f"after has {shown(earlier)}, not the name of a step")
    if step.compute is not None and not callable(step.compute):
        yield Problem("E001", f"compute is {shown(step.compute)}, not a function")
    for name in ("request", "undo_request", "charges"):
        template = getattr(step, name)
        if template is None and name == "charges":
            continue
        for problem in templates.not_data(template):
            yield problem._replace(text=f"its {name} {problem.text}")
    yield from conditions.malformed(step)
    yield from waits.malformed(step)
    yield from children.malformed(step)


def _not_names(step: Any) -> Iterable[Problem]:
    """Yield what is neither an agent nor an action, nor the name of one."""
    agent = written(step, "agent")
    if isinstance(agent, type) and issubclass(agent, Agent):
        if not isinstance(step.agent, str):
            text = f"agent is {shown(agent)}, which has no name"
            yield Problem("E002", text, 'Give the class a name: `name = "…"`.')
    elif not isinstance(agent, str):
        yield Problem("E002", f"agent is {shown(agent)}, not an agent or the name of one")
    for field in ("action", "undo"):
        value = written(step, field)
        if not (isinstance(value, str | None) or inspect.isfunction(value)):
            text = f"{field} is {shown(value)}, not an action or the name of one"
            yield Problem("E003", text, "Write the method as its class has it: Agent.action.")
    if not isinstance(step.irreversible, str):
        yield Problem("E005", f"irreversible is {shown(step.irreversible)}: it says why, in words")


def kind(step: Step) -> Iterable[Problem]:
    """Yield why a step is neither a call to an agent nor a computation."""
    if step.workflow:
        yield from children.kind(step)
        return
    if step.is_awaited:
        yield from waits.kind(step)
        return
    if step.compute is None:
        if step.agent == LOCAL:
            yield Problem(
                "E001",
                "has neither an agent nor a function that computes it, nor a person, a signal or child tasks",
            )
        return
    if step.agent or step.action:
        yield Problem("E001", "has both an agent and a function that computes it")
    if inspect.iscoroutinefunction(step.compute):
        yield Problem("E001", "is computed by a coroutine, not by a plain function")
    if step.undo or step.undo_request or step.irreversible or step.charges:
        yield Problem(
            "E001",
            "is computed, so it has no effect to be undone: it takes no undo, undo_request, irreversible "
            "or charges",
        )
    if step.policy:
        yield Problem("E007", "is computed, which never waits for a service: it takes no policy")


def calls(step: Step, agents: Mapping[str, type[Agent]]) -> Iterable[Problem]:
    """Yield what is wrong with the agent and the actions that a step names."""
    if step.agent == LOCAL:
        return
    agent = agents.get(step.agent)
    if agent is None:
        yield _no_agent(step.agent, agents)
    elif (kind := written(step, "agent")) not in (step.agent, agent):
        text = f"names {shown(kind)}, and {shown(agent)} is registered as the agent {step.agent!r}"
        yield Problem(
            "E002", text, "Register the class that the step names, or give it another name."
        )
    else:
        for field, request in (("action", step.request), ("undo", step.undo_request)):
            yield from _call(agent, written(step, field), getattr(step, field), request)
    yield from _undo(step)


def _call(agent: type[Agent], method: Any, name: str | None, request: Any) -> Iterable[Problem]:
    """Yield what is wrong with one action that a step names, or its request."""
    if name in {None, UNDECLARED}:
        return
    if inspect.isfunction(method) and getattr(agent, str(name), None) is not method:
        text = f"names {method.__qualname__}, which is not a method of {agent.__name__}"
        yield Problem(
            "E003", text, f"Write the method as {agent.__name__} has it, or another agent."
        )
    elif act := agent.actions().get(str(name)):
        for problem in templates.unlike(request, act.accepts):
            yield problem._replace(text=f"sends {name!r} {problem.text}")
    else:
        yield _no_action(agent, str(name))


def policy(step: Step, agents: Mapping[str, type[Agent]]) -> Iterable[Problem]:
    """Yield what is wrong with the thresholds that a step has for itself."""
    if step.agent != LOCAL:
        agent = agents.get(step.agent)
        yield from first_values.of_step(step.policy, agent.policy if agent else {})


def returned(step: Step, agents: Mapping[str, type[Agent]]) -> Mapping[str, Any] | None:
    """Return the schema of a step's result, if its action or its function declares one."""
    if step.agent == LOCAL:
        return step.gives
    agent = agents.get(step.agent)
    act = agent.actions().get(step.action) if agent else None
    return act.returns if act else None


def results(step: Step, schemas: Mapping[str, Mapping[str, Any] | None]) -> Iterable[Problem]:
    """Yield what a step takes of results that do not have it."""
    for template in (step.request, step.undo_request, step.when, step.each, step.not_before):
        yield from templates.of_results(template, schemas)
    yield from conditions.of_results(step, schemas)


def _no_agent(name: str, agents: Mapping[str, type[Agent]]) -> Problem:
    """Return what to do about an agent that is not registered."""
    forgotten = [kind for kind in _subclasses(Agent) if vars(kind).get("name") == name]
    if forgotten:
        where = f"{forgotten[0].__module__}.{forgotten[0].__qualname__}"
        return Problem(
            "E002",
            f"names agent {name!r}: the class {where} has this name, and is not registered",
            f"Add register({forgotten[0].__name__}) below it.",
        )
    return Problem("E002", f"names agent {name!r}{suggest(name, agents)}")


def _subclasses(kind: type[Agent]) -> Iterable[type[Agent]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _no_action(agent: type[Agent], name: str) -> Problem:
    """Return what to do about an action that an agent does not have."""
    if inspect.isfunction(getattr(agent, name, None)) and not hasattr(Agent, name):
        return Problem(
            "E003",
            f"names action {name!r} of {agent.name!r}: it has this method, which is not marked as an action",
            f"Put @action above {agent.__name__}.{name}.",
        )
    known = sorted(agent.actions().keys() - Agent.actions().keys())
    return Problem("E003", f"names action {name!r} of {agent.name!r}{suggest(name, known)}")


def _undo(step: Step) -> Iterable[Problem]:
    """Yield the problems of a step's declaration of its undo."""
    if step.undo in {None, UNDECLARED}:
        if step.undo == UNDECLARED and not step.irreversible:
            yield Problem("E005", "does not say how it is undone", HOW_TO_UNDO)
        if step.undo_request:
            text = "has an undo_request, but names no action to send it to"
            yield Problem("E005", text, HOW_TO_UNDO)
    elif step.irreversible:
        text = f"is irreversible, but names the undo {step.undo!r} all the same"
        yield Problem("E005", text, HOW_TO_UNDO)
