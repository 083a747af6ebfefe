"""Record the replies to attempts: processing → processed, or error, or failed (P8, P23, P25)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db import transaction

from ..database import prepared, sql
from ..decisions.gate import Observation
from ..decisions.progress import Refusal, StepView, after_reply, refuse_reply
from ..decisions.recovery import INSTANCE_SICK
from ..incidents import tallies
from ..incidents.tallies import StepFailure
from ..messaging.messages import Reply
from ..models import Event, Policy
from ..models.history import EventKind
from ..states import ANSWERED, Direction, Health, OnRejection, Outcome, StepState
from . import evidence, reports
from .foreign_locks import existing, with_locked_steps
from .holds import held
from .late_effects import close_undone, detect_late_effects
from .locked_task import Change, Ready, cancel, finish, lock, note
from .patience import wait
from .task_state import FinalFailure, cause_of
from .undo import begin
from .versions import attempts, require

# The attempt's history and the step's new state in one statement: both parts see the step as it
# was before, so the row itself gives its dispatcher and the time of dispatch. If no row is returned,
# the step is at another attempt, and none of this may be committed.
ENDED = """
WITH reply AS MATERIALIZED (
    SELECT *, 'processing' AS state  -- where a partial index knows the word, it would be taken
    FROM unnest(%(ids)s::bigint[], %(attempts)s::int[], %(generations)s::int[], %(outcomes)s::text[],
        %(results)s::jsonb[], %(codes)s::text[], %(messages)s::text[], %(tries)s::int[],
        %(started)s::float8[], %(by)s::text[], %(incidents)s::bigint[], %(in_doubt)s::bool[],
        %(retry_after)s::float8[], %(own_trouble)s::bool[])
    AS r (id, attempt, generation, outcome, result, code, message, tries, started, by, incident,
        in_doubt, retry_after, own_trouble)
), history AS (
    INSERT INTO orchestration_attempt (step_id, number, generation, scheduler, agent,
        dispatched_at, started_at, ended_at, outcome, tries, error_code, error_message)
    SELECT s.id, s.attempt, s.generation, s.locked_by, r.by, s.dispatched_at,
        to_timestamp(r.started), clock_timestamp(), r.outcome, r.tries, r.code, r.message
    FROM reply r JOIN orchestration_step s USING (id)
)
UPDATE orchestration_step s SET
    process_state = CASE r.outcome WHEN 'done' THEN 'processed' ELSE 'processing' END,
    locked_by = NULL,
    complete_by = CASE r.outcome WHEN 'done' THEN NULL ELSE clock_timestamp() END,
    ended_at = clock_timestamp(),
    outcome = r.outcome,
    in_doubt = r.in_doubt,
    probing_outcome = s.probing_outcome AND r.outcome IN ('unknown', 'transient'),
    result = CASE r.outcome WHEN 'done' THEN r.result ELSE s.result END,
    loaded = CASE r.outcome WHEN 'done' THEN NULL ELSE s.loaded END,
    error_code = r.code, error_message = r.message, retry_after = r.retry_after,
    own_trouble = r.own_trouble,
    incident_id = coalesce(r.incident, s.incident_id)
FROM reply r
WHERE s.id = r.id AND s.locked_by IS NOT NULL
    AND (s.process_state, s.attempt, s.generation) = (r.state, r.attempt, r.generation)
RETURNING s.id
"""

BY = "agent"
Accepted = tuple[Reply, StepView, Change]


@dataclass(kw_only=True)
class Recorded:
    """What recording a batch of replies did."""

    accepted: int = 0
    refused: list[tuple[Reply, Refusal]] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)  # whose window or backlog changed
    applications: set[str] = field(default_factory=set)  # those with new status messages
    observed: dict[str, list[Observation]] = field(default_factory=lambda: defaultdict(list))
    locked: set[UUID] = field(default_factory=set)  # tasks whose replies have to wait
    alerted: bool = False  # locks of alerts are held until the commit
    # of each task that has changed: its steps that are ready, and not written yet (`take_ready`)
    ready: dict[UUID, list[Ready]] = field(default_factory=dict)

    def add(self, other: "Recorded") -> None:
        """Add what recording another batch did; of a task in both, what is ready is what it says."""
        self.accepted += other.accepted
        self.refused += other.refused
        self.agents |= other.agents
        self.applications |= other.applications
        self.alerted |= other.alerted
        self.ready |= other.ready
        for agent, observed in other.observed.items():
            self.observed[agent] += observed

    def take_ready(self) -> list[Ready]:
        """Return the steps that are ready, once: the caller writes them in the same transaction."""
        ready, self.ready = self.ready, {}
        return [one for of_task in ready.values() for one in of_task]


@transaction.atomic(savepoint=False)
def record(
    replies: Sequence[Reply], *, warily: bool = False, claimed_next: bool = False
) -> Recorded:
    """Record the outcomes of attempts, make successors pending, finish tasks.

    Waits for no lock: replies to a task that another session has locked are left out, and so are
    rejections whose incident or alert is locked. `warily` is for a batch that met an unexpected
    lock: replies to a task with a locked step are left out, too. With `claimed_next` the caller claims in
    the same transaction: successors that become ready are returned, and are for `claim` to write.

    Guarded by state and attempt under the task's lock: the first of several replies to one attempt is
    recorded; a reply to an attempt that was given up changes nothing and is kept as an event. An attempt
    ends when the supervisor has counted it, not at its complete-by time: a reply that was sent in time
    and is read later is accepted while the step is still at that attempt.
    Raises `ConcurrentUpdate` if a row has changed under the lock: nothing may be committed then.
    A transient or unknown outcome leaves the step `processing` with its deadline passed: the
    supervisor counts it, and decides (P24, P26). A rejection is an error, or the undo of the whole
    task, as the agent's policy says.
    """
    recorded = Recorded()
    changes = _lock(replies, recorded, warily=warily)
    accepted: list[Accepted] = []
    for reply in replies:
        if reply.task in recorded.locked:
            continue
        change = changes.get(reply.task)
        step = change.steps.get(reply.step) if change else None
        refusal = refuse_reply(step, reply.attempt, reply.generation, reply.dispatch)
        if refusal or change is None or step is None:
            recorded.refused.append((reply, refusal or Refusal.NO_SUCH_STEP))
            continue
        after = after_reply(
            step, reply.outcome, reply.result, undoing=change.undoing, in_doubt=reply.in_doubt
        )
        not_the_service = reply.health == Health.NOTHING and reply.code != INSTANCE_SICK
        if not_the_service and after.state == StepState.PROCESSING:
            after = after.altered(own_trouble=True)  # an outage of the service does not excuse it
        change.moved(after)
        accepted.append((reply, after, change))
        recorded.agents.add(step.agent)
        if not (step.own_trouble and after.state == StepState.PROCESSING):
            recorded.observed[step.agent].append(_observation(reply, step))
    recorded.accepted = len(accepted)
    blamed = _count_rejected(accepted)
    _write_ended(accepted, blamed)
    reports.attempts(accepted)
    _cancel_unneeded(accepted)
    _reject(accepted, blamed)
    touched = {change.id: change for _, _, change in accepted}
    late = detect_late_effects([reply for reply, _ in recorded.refused], changes, by=BY)
    for change, step in late:
        touched[change.id] = change
        recorded.agents.add(step.agent)
    follows = finish(touched.values(), by=BY, keep_ready=claimed_next)
    recorded.alerted = bool(blamed or late or any(one.final_failures for one in touched.values()))
    recorded.agents |= follows.agents
    recorded.applications = follows.applications
    recorded.ready = {task: [] for task in touched}
    for one in follows.ready:
        recorded.ready[one.change.id].append(one)
    close_undone(
        (step, change)
        for _, step, change in accepted
        if step.direction == Direction.UNDO and step.state == StepState.PROCESSED
    )
    _note_refused(recorded.refused, changes)
    return recorded


def _observation(reply: Reply, step: StepView) -> Observation:
    """Return what a reply shows of the service's health; without a word of the agent, by its outcome."""
    good = Health.GOOD if reply.outcome in ANSWERED else Health.BAD
    return Observation(
        health=reply.health or good,
        sent_at=step.dispatch / 1e6,
        retry_after=reply.retry_after,
    )


def _lock(replies: Sequence[Reply], recorded: Recorded, *, warily: bool) -> dict[UUID, Change]:
    """Lock the tasks of replies, and the incidents of rejections; note the replies that must wait."""
    tasks = {reply.task for reply in replies}
    changes = lock(tasks, wait=False)
    recorded.locked = existing(tasks - changes.keys())
    if warily:
        recorded.locked |= with_locked_steps(changes)
    causes = {}
    for reply in [reply for reply in replies if reply.outcome == Outcome.REJECTED]:
        change = changes.get(reply.task)
        step = change.steps.get(reply.step) if change else None
        if change and step:
            cause = cause_of(step, change.workflow, reply.outcome, reply.code, reply.message)
            causes[change.id, cause.fingerprint] = cause
    if causes:
        waiting = tallies.lock(causes.values())
        recorded.locked |= {task for task, name in causes if name in waiting}
    return {task: change for task, change in changes.items() if task not in recorded.locked}


def _cancel_unneeded(accepted: Sequence[Accepted]) -> None:
    """Cancel the steps of tasks being undone that turned out to have had no effect."""
    unneeded = [(step, change) for _, step, change in accepted if step.state == StepState.CANCELLED]
    cancel([step for step, _ in unneeded])
    Event.objects.bulk_create(
        note(change, step, EventKind.SETTLED, by=BY, reason=f"the service answered: {step.outcome}")
        for step, change in unneeded
    )


def _count_rejected(accepted: Sequence[Accepted]) -> dict[int, int]:
    """Count rejections to their incidents; return these by step. The supervisor counts other failures."""
    failures = [
        StepFailure(
            step=step.id,
            cause=cause_of(step, change.workflow, reply.outcome, reply.code, reply.message),
            message=reply.message,
        )
        for reply, step, change in accepted
        if step.state == StepState.ERROR
    ]
    incidents = tallies.count_failures(failures, by=BY)
    return {failure.step: incident for failure, incident in zip(failures, incidents, strict=True)}


def _reject(accepted: Sequence[Accepted], blamed: Mapping[int, int]) -> None:
    """Begin the undo of a rejected step's task if the policy requires it; otherwise it is an error.

    A policy may also have it undone later, unless it was resolved by then. A held task is undone after
    its release.
    """
    if not (rejected := wait([one for one in accepted if one[1].state == StepState.ERROR], by=BY)):
        return
    policies = defaultdict(Policy, Policy.objects.in_bulk({step.agent for _, step, _ in rejected}))
    to_undo = {
        step.id
        for _, step, change in rejected
        if policies[step.agent].on_rejection == OnRejection.UNDO and not change.undoing
    }
    kept = held(to_undo)
    for reply, step, change in rejected:
        why = f"{reply.code}: {reply.message}".strip(": ")
        policy = policies[step.agent]
        if change.steps[step.id].state != StepState.ERROR:
            continue  # another rejection in this batch has begun its task's undo
        resolve_within = 0.0 if step.id in kept else None
        if step.id in to_undo - kept and not begin(
            change, actor=BY, reason=f"{step.name} was rejected ({why})"
        ):
            continue
        if policy.on_rejection == OnRejection.WAIT and not change.undoing:
            resolve_within = policy.resolve_within
        change.final_failures.append(
            FinalFailure(
                step=step.id,
                code=reply.code,
                message=reply.message,
                attempt=step.attempt,
                resolve_within=resolve_within,
                incident=blamed[step.id],
            )
        )


def _write_ended(accepted: Sequence[Accepted], blamed: Mapping[int, int]) -> None:
    if not accepted:
        return
    replies = [reply for reply, _, _ in accepted]
    written = prepared.run(
        ENDED,
        {
            **attempts(step for _, step, _ in accepted),
            "outcomes": [reply.outcome for reply in replies],
            "results": sql.as_json([reply.result for reply in replies]),
            "codes": [reply.code[:100] for reply in replies],
            "messages": [reply.message for reply in replies],
            "tries": [reply.tries for reply in replies],
            "started": [reply.started for reply in replies],
            "by": [reply.by[:80] for reply in replies],
            "incidents": [blamed.get(reply.step) for reply in replies],
            "own_trouble": [step.own_trouble for _, step, _ in accepted],
            "in_doubt": [step.in_doubt for _, step, _ in accepted],
            "retry_after": [reply.retry_after for reply in replies],
        },
    )
    require(written, replies)
    evidence.write(replies)


def _note_refused(refused: Sequence[tuple[Reply, Refusal]], changes: dict[UUID, Change]) -> None:
    """Write the content of late and repeated replies to the task's history."""
    events = defaultdict(list)
    for reply, refusal in refused:
        if (change := changes.get(reply.task)) and reply.step in change.steps:
            content = f"{reply.outcome} {reply.code}".strip()
            events[reply.step, reply.attempt, f"{refusal.value}; it was: {content}"].append(reply)
    Event.objects.bulk_create(
        Event(
            task_id=replies[0].task,
            step_id=step,
            kind=EventKind.REPLY_REFUSED,
            actor=replies[0].by,
            attempt=attempt,
            reason=reason,
        )
        for (step, attempt, reason), replies in events.items()
    )
