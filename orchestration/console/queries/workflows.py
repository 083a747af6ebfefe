"""The workflows' page: the steps of each, and how many tasks are at each step."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ... import policies, registry
from ...database import clock, sql
from ...decisions import flow_words
from ...decisions.recovery import Thresholds
from ...models import Hold, Policy
from ...models.hold import Scope
from ...states import StepState
from ...transitions.waits import DEFAULT_S
from ...workflows.step import Step
from ...workflows.workflow import Workflow
from ..durations import declared_time, format_duration

MOST = 2_000  # steps of each state that are counted one by one

# Steps that wait for others are not counted: a task stands where something happens, or should. What
# is in error is known from its incidents, with what the leader has not added up yet; the rest is read
# along partial indexes.
COUNTS = """
SELECT t.workflow, s.name, s.direction, s.process_state, count(*) FROM (
    (SELECT task_id, name, direction, process_state FROM orchestration_step
        WHERE process_state = 'pending' LIMIT %(limit)s)
    UNION ALL
    (SELECT task_id, name, direction, process_state FROM orchestration_step
        WHERE process_state = 'processing' LIMIT %(limit)s)
    UNION ALL
    (SELECT task_id, name, direction, process_state FROM orchestration_step
        WHERE process_state = 'awaiting' LIMIT %(limit)s)
) AS s JOIN orchestration_task t ON t.id = s.task_id
GROUP BY t.workflow, s.name, s.direction, s.process_state
UNION ALL
SELECT i.workflow, i.step, i.direction, 'error', sum(i.open_tasks + coalesce(t.open_tasks, 0))
FROM orchestration_incident i LEFT JOIN (
    SELECT incident_id, sum(open_tasks) AS open_tasks FROM orchestration_incidenttally
    GROUP BY incident_id) AS t ON t.incident_id = i.id
WHERE i.open_tasks + coalesce(t.open_tasks, 0) > 0
GROUP BY i.workflow, i.step, i.direction
"""


@dataclass(frozen=True, kw_only=True)
class StepCounts:
    """How many tasks are at a step, by state; `undoing`: at its undo."""

    pending: int = 0
    processing: int = 0
    awaiting: int = 0
    error: int = 0
    undoing: int = 0


@dataclass(frozen=True, kw_only=True)
class StepShape:
    """One step as it is declared, its thresholds, who stands at it, and what holds it.

    `policy` is its agent's; `own` names the thresholds that the step has for itself, of `thresholds`.
    """

    step: Step
    policy: Policy | None
    thresholds: Thresholds | None
    own: Sequence[str]
    counts: StepCounts
    hold: Hold | None

    @property
    def condition(self) -> str:
        """Return its condition in words, if it has one."""
        return flow_words.condition(self.step.flow)

    @property
    def refusals(self) -> str:
        """Return what follows its refusals, in words, as far as its workflow says it."""
        return flow_words.refusals(self.step.flow)

    @property
    def begins(self) -> str:
        """Return when it begins: so long after its turn has come, or by what template."""
        return declared_time(self.step.not_before)

    @property
    def ends(self) -> str:
        """Return by when its result has to come that comes later, and what follows; empty if it has none."""
        within, awaited = self.step.ends_within, self.step.is_awaited
        if within is None and not awaited:
            return ""
        seconds = DEFAULT_S if within is None else within
        known = isinstance(seconds, int | float)
        time = f"within {format_duration(float(seconds))}" if known else "by a time of the input"
        return f"ends {time}, or else: {self.step.late}"


@dataclass(frozen=True, kw_only=True)
class WorkflowShape:
    """One registered workflow."""

    workflow: Workflow
    steps: Sequence[StepShape]


@dataclass(frozen=True, kw_only=True)
class WorkflowsPage:
    """Every registered workflow; `cut` says that more steps wait or are at work than `MOST`."""

    now: datetime
    workflows: Sequence[WorkflowShape]
    cut: bool
    most: int = MOST


def workflows_page() -> WorkflowsPage:
    """Return the page in five queries."""
    now = clock.database_now()
    agents = {policy.agent: policy for policy in Policy.objects.all()}
    own = policies.own_of_steps()
    holds = Hold.objects.filter(until=None, scope=Scope.STEP).order_by("-cause")
    held = {(hold.workflow, hold.step): hold for hold in holds}
    counts, cut = _counts()
    return WorkflowsPage(
        now=now,
        cut=cut,
        workflows=[
            WorkflowShape(
                workflow=workflow,
                steps=[
                    _shape(
                        step,
                        agents.get(step.agent),
                        own.get((name, step.name), {}),
                        counts.get((name, step.name), StepCounts()),
                        held.get((name, step.name)),
                    )
                    for step in workflow.steps
                ],
            )
            for name, workflow in sorted(
                registry.workflows.items(), key=lambda entry: (entry[1].background, entry[0])
            )
        ],
    )


def _shape(
    step: Step,
    policy: Policy | None,
    own: Mapping[str, Any],
    counts: StepCounts,
    hold: Hold | None,
) -> StepShape:
    return StepShape(
        step=step,
        policy=policy,
        thresholds=policies.thresholds(policy, own) if policy else None,
        own=[name.replace("_", " ") for name in own],
        counts=counts,
        hold=hold,
    )


def _counts() -> tuple[Mapping[tuple[str, str], StepCounts], bool]:
    by_step: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    totals: dict[str, int] = defaultdict(int)
    for workflow, name, direction, state, count in sql.run(COUNTS, {"limit": MOST + 1}):
        totals[state] += 0 if state == StepState.ERROR else count
        kind = "undoing" if direction == "undo" and state != StepState.ERROR else state
        by_step[workflow, name][kind] += int(count)
    cut = any(total > MOST for total in totals.values())
    return {key: StepCounts(**counts) for key, counts in by_step.items()}, cut
