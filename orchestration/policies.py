"""Read the settings of admins: thresholds of agents and steps, and the interval of sweeps."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from django.db.models import Q

from .database import sql
from .decisions.recovery import Thresholds
from .decisions.step_policy import OF_STEPS, with_own
from .models import Policy, StepPolicy

MIN_SWEEP_TIMEOUT_S = 30.0  # a leader may take at least this long to finish a sweep
NOTHING: Mapping[Any, Any] = MappingProxyType({})
HAS_OWN = Q.create([(f"{name}__isnull", False) for name in OF_STEPS], connector=Q.OR)


class StepKey(NamedTuple):
    """A step of a workflow, and the agent that it calls: of a task in flight, that of its day."""

    workflow: str
    step: str
    agent: str


def patience() -> float:
    """Return the seconds after which a sweep counts as missed."""
    return max(MIN_SWEEP_TIMEOUT_S, 10 * interval())


def interval() -> float:
    """Return the seconds between two sweeps, as set now."""
    rows = sql.run("SELECT interval FROM orchestration_supervisorpolicy WHERE id = 1", {})
    return float(rows[0][0])


def of_steps(steps: Iterable[StepKey]) -> dict[StepKey, Thresholds]:
    """Return the thresholds in force for each of some steps: its own, else its agent's. Two queries."""
    steps = set(steps)
    agents = defaultdict(Policy, Policy.objects.in_bulk({key.agent for key in steps}))
    own = own_of_steps(workflow__in={key.workflow for key in steps})
    return {key: thresholds(agents[key.agent], own.get(key[:2], NOTHING)) for key in steps}


def own_of_steps(**where: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the own values of the steps that have any, by workflow and step. One query.

    `where` limits the rows.
    """
    rows = StepPolicy.objects.filter(HAS_OWN, **where)
    return {(row.workflow, row.step): row.own for row in rows}


def thresholds(policy: Policy, own: Mapping[str, Any] = NOTHING) -> Thresholds:
    """Return the thresholds of a policy, with a step's own values in their places."""
    agents = Thresholds(
        failure_threshold=policy.failure_threshold,
        backoff=policy.backoff,
        backoff_cap=policy.backoff_cap,
        undo_threshold=policy.undo_threshold,
        past_threshold=policy.past_threshold,
        extended_wait=policy.extended_wait,
        max_extended_waits=policy.max_extended_waits,
        retry_after_cap=policy.retry_after_cap,
        on_rejection=policy.on_rejection,
        resolve_within=policy.resolve_within,
    )
    return with_own(agents, own)


def agents() -> list[str]:
    """Return the names of all agents."""
    return list(Policy.objects.order_by("agent").values_list("agent", flat=True))
