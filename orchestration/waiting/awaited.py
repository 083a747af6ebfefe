"""What steps wait for whose results come later, or whose time has not come: their rows, and in words."""

from collections.abc import Iterable
from typing import Any

from ..decisions.flow import CHILDREN
from ..models import Step, Wait
from ..states import Direction, StepState

COMPUTED = "local (no agent)"  # instead of an agent's action


def waits_of(steps: Iterable[Step]) -> dict[int, Wait]:
    """Return what steps await, or until when they wait for their time, by step; no query if none does."""
    ids = [
        step.id
        for step in steps
        if step.process_state == StepState.AWAITING or waits_for_time(step)
    ]
    if not ids:
        return {}
    return {wait.step_id: wait for wait in Wait.objects.filter(step__in=ids).defer("report")}


def waits_for_time(step: Step) -> bool:
    """Return whether all that a step comes after has ended, and it waits for its time."""
    return step.process_state == StepState.WAITING and step.pending_since is not None


def source(step: Any) -> tuple[str, str]:
    """Return what brings the result of a step, stored or declared: ("person" or "signal", its name).

    Both are empty for a step of an agent, and for one that is computed.
    """
    flow = step.flow
    for kind in ("person", "signal"):
        name = flow.get(kind) if isinstance(flow, dict) else getattr(flow, kind, "")
        if name:
            return kind, name
    return "", ""


def children_of(step: Any) -> str:
    """Return the workflow of a step's children, stored or declared, or whose undo they await; empty: none."""
    flow = step.flow
    name = flow.get("workflow", "") if isinstance(flow, dict) else getattr(flow, "workflow", "")
    return str(name) or (
        CHILDREN if not step.agent and getattr(step, "action", "") == CHILDREN else ""
    )


def awaited(step: Any) -> str:
    """Return what an awaiting step waits for, in words."""
    if children_of(step):
        return "its children" if step.direction == Direction.DO else "the undo of its children"
    kind, name = source(step)
    if kind == "person":
        return f"a decision by {name}"
    if kind == "signal":
        return f"the signal {name}"
    return f"the result from {step.agent}" if step.agent else "its result"


def performer(step: Any) -> str:
    """Return what performs a step: an agent's action, a person, a signal, or a scheduler by itself."""
    kind, name = source(step)
    if workflow := children_of(step):
        return f"children: {workflow}"
    if kind:
        return f"{kind} {name}"
    return f"{step.agent}.{step.action}" if step.agent else COMPUTED
