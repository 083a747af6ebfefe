"""One task: its steps, their attempts, its events."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from ...applications import by_hand
from ...database import clock
from ...decisions import flow_words
from ...decisions.recovery import KEY_FORGOTTEN, KEYS, keeps_key, key_of_resubmission
from ...models import Alert, Attempt, AttemptEvidence, Event, Hold, Step, Submission, Task, Wait
from ...payloads.keys import step_key
from ...states import FINAL_TASK_STATES, LOCAL, Direction, Outcome, StepState
from ...waiting import next_step
from ...waiting.agent_facts import agents, queued
from ...waiting.agent_view import AgentView
from ...waiting.awaited import waits_of
from ...waiting.holds import holds_on
from ..durations import declared_time
from .children import Children, children_of
from .conflicts import late_effects

MOST_ATTEMPTS = 200
MOST_EVENTS = 200
MOST_EVIDENCE = 20  # up to 12 kB each, and the page polls
MOST_FOLLOW_UPS = 20
UNDER_WAY = (StepState.ERROR, StepState.PROCESSING, StepState.PENDING, StepState.AWAITING)


@dataclass(frozen=True, kw_only=True)
class ResubmissionKey:
    """Under which key a resubmission goes, and why."""

    key: str
    generation: int
    new: bool
    why: str


def again(step: Step, *, changed: bool = False, nothing_done: bool = False) -> ResubmissionKey:
    """Return which key a resubmission of a step in error would use."""
    doubt = step.in_doubt
    why = key_of_resubmission(
        step.outcome, step.attempt, in_doubt=doubt, changed=changed, nothing_done=nothing_done
    )
    generation = step.generation + (not keeps_key(why))
    return ResubmissionKey(
        key=step_key(step.task_id, step.name, step.direction, generation),
        generation=generation,
        new=not keeps_key(why),
        why=KEYS[why],
    )


@dataclass(frozen=True, kw_only=True)
class StepDetail:
    """A step, its tries, and what happens next to it."""

    step: Step
    attempts: Sequence[Attempt]
    outlook: next_step.NextStep
    hold: Hold | None = None
    evidence: Mapping[int, AttemptEvidence] = field(default_factory=dict)  # by attempt
    wait: Wait | None = None
    children: Children | None = None

    @property
    def tried(self) -> Sequence[tuple[Attempt, AttemptEvidence | None]]:
        """Return the attempts, each with what shows why it failed."""
        return [(attempt, self.evidence.get(attempt.number)) for attempt in self.attempts]

    @property
    def in_error(self) -> bool:
        """Return whether an operator may resubmit it."""
        return self.step.process_state == StepState.ERROR

    @property
    def condition(self) -> str:
        """Return its condition in words, if it has one."""
        return flow_words.condition(flow_words.stored(self.step.flow))

    @property
    def begins(self) -> str:
        """Return when it begins: so long after its turn has come, or by what template."""
        flow = flow_words.stored(self.step.flow)
        return declared_time(flow.not_before) if flow else ""

    @property
    def refusals(self) -> str:
        """Return what follows its refusals, in words, as far as its workflow says it."""
        return flow_words.refusals(flow_words.stored(self.step.flow))

    @property
    def awaits(self) -> bool:
        """Return whether its result is still to come, and may be recorded."""
        return self.step.process_state == StepState.AWAITING and not self.awaits_children

    @property
    def awaits_children(self) -> bool:
        """Return whether its children end it, or its undo."""
        undoes = self.step.agent == LOCAL and self.step.direction == Direction.UNDO
        return undoes or bool((self.step.flow or {}).get("workflow"))

    @property
    def reminders(self) -> int:
        """Return of how many reminders its workflow has it."""
        return len((self.step.flow or {}).get("remind", ()))

    @property
    def at_work(self) -> bool:
        """Return whether an agent has it now."""
        return self.step.locked_by is not None

    @property
    def again(self) -> ResubmissionKey:
        """Return under which key a plain resubmission would go."""
        return again(self.step)

    @property
    def forgotten(self) -> bool:
        """Return whether only a person can find out what was done: the service forgot the key."""
        return self.step.in_doubt and self.step.error_code == KEY_FORGOTTEN


@dataclass(frozen=True, kw_only=True)
class TaskDetail:
    """All that the page of a task shows; the newest attempts and events, should there be many."""

    now: datetime
    task: Task
    outlook: next_step.NextStep
    steps: Sequence[StepDetail]
    events: Sequence[Event]
    cut: bool
    hold: Hold | None
    agents: Mapping[str, AgentView]
    late_effects: Sequence[Alert] = ()
    started: Event | None = None  # by hand
    about: Task | None = None  # that it follows up, if there is such a task
    follow_ups: Sequence[Task] = ()  # one more than is shown, if there are more

    @property
    def failed(self) -> Sequence[StepDetail]:
        """Return the steps that an operator has to decide about."""
        return [step for step in self.steps if step.in_error]

    @property
    def may_be_undone(self) -> bool:
        """Return whether an undo of it has not begun yet."""
        return self.task.undo_at is None

    @property
    def live(self) -> bool:
        """Return whether a hold would keep anything of it."""
        return self.task.state not in FINAL_TASK_STATES


def task_detail(task_id: UUID) -> TaskDetail | None:
    """Return a task's page, or None if the task is unknown: seventeen queries, and two for its children."""
    task = Task.objects.select_related("parent__task").filter(id=task_id).first()
    if task is None:
        return None
    known = agents(now := clock.database_now())
    steps = list(Step.objects.filter(task=task).select_related("alert").order_by("id"))
    attempts, attempts_cut = _attempts(steps)
    evidence, events = _evidence(attempts), _events(task)
    done = next_step.done_names(steps)
    held = holds_on([task.id])
    places, waits, children = queued(steps), waits_of(steps), children_of(steps)
    details = []
    for step in steps:
        hold = held.of(task.id, task.workflow, step.name)
        outlook = next_step.of_step(
            step,
            workflow=task.workflow,
            done=done,
            agents=known,
            now=now,
            hold=hold,
            place=places.get(step.id, next_step.NOT_QUEUED),
            wait=waits.get(step.id),
        )
        details.append(
            StepDetail(
                step=step,
                attempts=attempts[step.id],
                outlook=outlook,
                hold=hold,
                evidence=evidence[step.id],
                wait=waits.get(step.id),
                children=children.get(step.id),
            )
        )
    return TaskDetail(
        now=now,
        task=task,
        outlook=_outlook(task, details),
        steps=details,
        events=events[:MOST_EVENTS],
        cut=attempts_cut or len(events) > MOST_EVENTS,
        hold=held.by_task.get(task.id),
        agents=known,
        late_effects=late_effects(task.id),
        started=by_hand.started(task.workflow, task.reference),
        about=_about(task),
        follow_ups=list(task.follow_ups.defer("data")[: MOST_FOLLOW_UPS + 1]),
    )


def _about(task: Task) -> Task | None:
    """Return the task that another one is about, if it names one and that is there."""
    if not task.about_reference:
        return None
    return Task.named(task.about_workflow, task.about_reference)


def _events(task: Task) -> list[Event]:
    """Return the newest events; one more than is shown, if there are more."""
    newest = Event.objects.filter(task=task).select_related("step").order_by("-id")
    return list(newest[: MOST_EVENTS + 1])


def _attempts(steps: Sequence[Step]) -> tuple[dict[int, list[Attempt]], bool]:
    """Return the attempts of each step, first one first, and whether some were left out."""
    newest = Attempt.objects.filter(step__in=[step.id for step in steps]).order_by("-id")
    attempts = list(newest[: MOST_ATTEMPTS + 1])
    by_step: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in reversed(attempts[:MOST_ATTEMPTS]):
        by_step[attempt.step_id].append(attempt)
    return by_step, len(attempts) > MOST_ATTEMPTS


def _evidence(attempts: Mapping[int, Sequence[Attempt]]) -> dict[int, dict[int, AttemptEvidence]]:
    """Return what shows why attempts failed, by step and number; no query if none has failed."""
    evidence: dict[int, dict[int, AttemptEvidence]] = defaultdict(dict)
    failed = [step for step, of_step in attempts.items()
              if any(attempt.outcome != Outcome.DONE for attempt in of_step)]  # fmt: skip
    if failed:
        rows = AttemptEvidence.objects.filter(step__in=failed).order_by("-id")
        for row in rows[:MOST_EVIDENCE]:
            evidence[row.step_id][row.number] = row
    return evidence


def _outlook(task: Task, details: Sequence[StepDetail]) -> next_step.NextStep:
    index = next_step.telling_step([detail.step for detail in details])
    telling = details[index] if index is not None else None
    under_way = sum(detail.step.process_state in UNDER_WAY for detail in details)
    return next_step.of_task(
        task.state,
        telling.step.name if telling else "",
        telling.outlook if telling else None,
        max(0, under_way - 1),
        [detail.step for detail in details],
    )


def task_by_id(task_id: UUID) -> Task | None:
    """Return a task alone."""
    return Task.objects.filter(id=task_id).first()


def step_by_id(step_id: int) -> Step | None:
    """Return the step with its task, in its present state."""
    return Step.objects.select_related("task").filter(id=step_id).first()


def submission_named(workflow: str, reference: str) -> Submission | None:
    """Return the newest submission with this reference that is not a task yet."""
    rows = Submission.objects.filter(workflow=workflow, reference=reference)
    return rows.defer("data").order_by("-id").first()
