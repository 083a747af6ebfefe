"""A scheduler records replies: processing → processed, or error, or failed (P8, P23, P25)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from django.db import transaction

from .. import incidents, sql
from ..gate import Heard
from ..incidents import Failure
from ..messages import Reply
from ..models import Event, Policy
from ..models.history import EventKind
from ..progression import Refusal, StepView, after_reply, refuse_reply
from ..recovery import INSTANCE_SICK
from ..states import ANSWERED, Direction, Health, OnRejection, Outcome, StepState
from .changes import Change, cancel, finish, known, lock, note, with_locked_steps
from .holds import held
from .late import close_undone, hear_late
from .settle import Trouble, cause_of
from .undo import begin

# The attempt's history and the step's new state in one statement: both parts see the step as it
# was before, so who had dispatched it, and when, comes from the row itself. Where it returns no row, the
# step is at that attempt no more, and none of this may stay.
ENDED = """
WITH reply AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)s::bigint[], %(attempts)s::int[], %(outcomes)s::text[],
        %(results)s::jsonb[], %(codes)s::text[], %(messages)s::text[], %(tries)s::int[],
        %(started)s::float8[], %(by)s::text[], %(incidents)s::bigint[], %(in_doubt)s::bool[],
        %(retry_after)s::float8[], %(own_trouble)s::bool[])
    AS r (id, attempt, outcome, result, code, message, tries, started, by, incident, in_doubt,
        retry_after, own_trouble)
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
    settling = s.settling AND r.outcome IN ('unknown', 'transient'),
    result = CASE r.outcome WHEN 'done' THEN r.result ELSE s.result END,
    loaded = CASE r.outcome WHEN 'done' THEN NULL ELSE s.loaded END,
    error_code = r.code, error_message = r.message, retry_after = r.retry_after,
    own_trouble = r.own_trouble,
    incident_id = coalesce(r.incident, s.incident_id)
FROM reply r
WHERE s.id = r.id AND s.attempt = r.attempt
  AND s.process_state = 'processing' AND s.locked_by IS NOT NULL
RETURNING s.id
"""

# Refusals that are waited for: again later, apart from one another, under a new key.
WAITED_FOR = """
UPDATE orchestration_step SET process_state = 'pending', complete_by = NULL,
    generation = generation + 1, keyed_at = NULL, pending_since = clock_timestamp(),
    failure_count = 0, rounds = 0, alone = false, failed_at = NULL, own_trouble = false,
    run_after = clock_timestamp()
        + (patience->>'wait')::float8 * (1 + random() / 10) * interval '1 second'
WHERE id = ANY(%(ids)s) AND process_state = 'processing' AND NOT in_doubt
    AND patience->>'code' = error_code AND (patience->>'until')::timestamptz > (SELECT clock_timestamp())
RETURNING id, generation, patience->>'until'
"""

BY = "agent"


class Overtaken(Exception):
    """A step of a locked task was changed by a session that does not keep to the lock."""


@dataclass(kw_only=True)
class Recorded:
    """What recording a batch of replies did."""

    accepted: int = 0
    refused: list[tuple[Reply, Refusal]] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)  # whose window or backlog changed
    applications: set[str] = field(default_factory=set)  # who has a status message waiting
    heard: dict[str, list[Heard]] = field(default_factory=lambda: defaultdict(list))
    locked: set[UUID] = field(default_factory=set)  # tasks whose replies have to wait
    alerted: bool = False  # locks of alerts are held until the commit

    def add(self, other: "Recorded") -> None:
        """Add what recording another batch did."""
        self.accepted += other.accepted
        self.refused += other.refused
        self.agents |= other.agents
        self.applications |= other.applications
        self.alerted |= other.alerted
        for agent, heard in other.heard.items():
            self.heard[agent] += heard


@transaction.atomic(savepoint=False)
def record(replies: Sequence[Reply], *, warily: bool = False) -> Recorded:
    """Record the outcomes of attempts, make successors pending, finish tasks.

    Waits for no task: replies to one that another session has locked are left out, and so are
    rejections for a cause whose incident or alert is. `warily` is for a batch that met with a lock
    it did not expect: replies to tasks of which a step is locked are left out, too.

    Guarded by state and attempt under the task's lock: of several replies to one attempt the first
    lands, and one to an attempt that was given up changes nothing and is kept as an event. An attempt is
    over when the supervisor has counted it, not at its complete-by time: a reply that was sent in time
    and is read after that is accepted as long as the step is still its attempt's.
    Raises `Overtaken` if a row has changed under the lock: nothing is written then.
    A transient or unknown outcome leaves the step `processing` with its deadline passed: the
    supervisor counts it, and decides (P24, P26). A rejection is an error, or the undo of the whole
    task, as the agent's policy says.
    """
    recorded = Recorded()
    changes = _lock(replies, recorded, warily=warily)
    accepted: list[tuple[Reply, StepView, Change]] = []
    for reply in replies:
        task = UUID(reply.task)
        if task in recorded.locked:
            continue
        change = changes.get(task)
        step = change.steps.get(reply.step) if change else None
        refusal = refuse_reply(step, reply.attempt, reply.generation, reply.dispatch)
        if refusal or change is None or step is None:
            recorded.refused.append((reply, refusal or Refusal.NO_SUCH_STEP))
            continue
        after = after_reply(
            step, reply.outcome, reply.result, undoing=change.undoing, in_doubt=reply.in_doubt
        )
        ours = reply.health == Health.NOTHING and reply.code != INSTANCE_SICK
        if ours and after.state == StepState.PROCESSING:
            after = replace(after, own_trouble=True)  # no trouble of the service excuses it
        change.moved(after)
        accepted.append((reply, after, change))
        recorded.agents.add(step.agent)
        if not (step.own_trouble and after.state == StepState.PROCESSING):
            recorded.heard[step.agent].append(_heard(reply, step))
    recorded.accepted = len(accepted)
    blamed = _count_rejected(accepted)
    _write_ended(accepted, blamed)
    _let_be(accepted)
    _reject(accepted, blamed)
    touched = {change.id: change for _, _, change in accepted}
    late = hear_late([reply for reply, _ in recorded.refused], changes, by=BY)
    for change, step in late:
        touched[change.id] = change
        recorded.agents.add(step.agent)
    follows = finish(touched.values(), by=BY)
    recorded.alerted = bool(blamed or late or any(one.troubles for one in touched.values()))
    recorded.agents |= follows.agents
    recorded.applications = follows.applications
    close_undone(
        (step, change)
        for _, step, change in accepted
        if step.direction == Direction.UNDO and step.state == StepState.PROCESSED
    )
    _keep_refused(recorded.refused, changes)
    return recorded


def _heard(reply: Reply, step: StepView) -> Heard:
    """Return what a reply says of the service; an agent may leave that to its outcome."""
    good = Health.GOOD if reply.outcome in ANSWERED else Health.BAD
    return Heard(
        health=reply.health or good,
        sent_at=step.dispatch / 1e6,
        retry_after=reply.retry_after,
    )


def _lock(replies: Sequence[Reply], recorded: Recorded, *, warily: bool) -> dict[UUID, Change]:
    """Lock the tasks of replies, and what rejections refer to; note those that have to wait."""
    tasks = {UUID(reply.task) for reply in replies}
    changes = lock(tasks, wait=False)
    recorded.locked = known(tasks - changes.keys())
    if warily:
        recorded.locked |= with_locked_steps(changes)
    causes = {}
    for reply in [reply for reply in replies if reply.outcome == Outcome.REJECTED]:
        change = changes.get(UUID(reply.task))
        step = change.steps.get(reply.step) if change else None
        if change and step:
            cause = cause_of(step, change.workflow, reply.outcome, reply.code, reply.message)
            causes[change.id, cause.fingerprint] = cause
    if causes:
        waiting = incidents.lock(causes.values())
        recorded.locked |= {task for task, name in causes if name in waiting}
    return {task: change for task, change in changes.items() if task not in recorded.locked}


def _let_be(accepted: Sequence[tuple[Reply, StepView, Change]]) -> None:
    """Cancel steps of tasks being undone of which nothing turned out to be done."""
    unneeded = [(step, change) for _, step, change in accepted if step.state == StepState.CANCELLED]
    cancel([step.id for step, _ in unneeded])
    Event.objects.bulk_create(
        note(change, step, EventKind.SETTLED, by=BY, reason=f"the service said: {step.outcome}")
        for step, change in unneeded
    )


def _count_rejected(accepted: Sequence[tuple[Reply, StepView, Change]]) -> dict[int, int]:
    """Count rejections to their incidents; return these by step. All else the supervisor counts."""
    failures = [
        Failure(
            step=step.id,
            cause=cause_of(step, change.workflow, reply.outcome, reply.code, reply.message),
            message=reply.message,
        )
        for reply, step, change in accepted
        if step.state == StepState.ERROR
    ]
    found = incidents.count(failures, by=BY)
    return {failure.step: known for failure, known in zip(failures, found, strict=True)}


def _wait(
    rejected: Sequence[tuple[Reply, StepView, Change]],
) -> Sequence[tuple[Reply, StepView, Change]]:
    """Have steps wait whose refusal is waited for; return the others: processing → pending."""
    ids = [step.id for _, step, _ in rejected]
    waiting = {step: how for step, *how in sql.run(WAITED_FOR, {"ids": ids})} if ids else {}
    events = []
    for reply, step, change in rejected:
        if step.id in waiting:
            generation, until = waiting[step.id]
            change.moved(replace(step, state=StepState.PENDING, generation=generation))
            reason = f"{reply.code}: again and again until {until}, each time with a new key"
            events.append(note(change, step, EventKind.WAITS, by=BY, reason=reason))
    Event.objects.bulk_create(events)
    return [one for one in rejected if one[1].id not in waiting]


def _reject(accepted: Sequence[tuple[Reply, StepView, Change]], blamed: Mapping[int, int]) -> None:
    """Have the task undone where the policy wants that of a rejection; otherwise it is an error.

    A policy may also want it undone later, unless somebody has mended it by then; and what is held is
    undone once it is not.
    """
    rejected = _wait([one for one in accepted if one[1].state == StepState.ERROR])
    if not rejected:
        return
    known = Policy.objects.in_bulk({step.agent for _, step, _ in rejected})
    policies = defaultdict(Policy, known)
    wanted = {
        step.id
        for _, step, change in rejected
        if policies[step.agent].on_rejection == OnRejection.UNDO and not change.undoing
    }
    kept = held(wanted)
    for reply, step, change in rejected:
        why = f"{reply.code}: {reply.message}".strip(": ")
        policy = policies[step.agent]
        if change.steps[step.id].state != StepState.ERROR:
            continue  # another rejection of the same batch has its task undone already
        mend_within = 0.0 if step.id in kept else None
        if step.id in wanted - kept and not begin(
            change, actor=BY, reason=f"{step.name} was rejected ({why})"
        ):
            continue
        if policy.on_rejection == OnRejection.WAIT and not change.undoing:
            mend_within = policy.mend_within
        change.troubles.append(
            Trouble(
                step=step.id,
                code=reply.code,
                message=reply.message,
                attempt=step.attempt,
                mend_within=mend_within,
                incident=blamed[step.id],
            )
        )


def _write_ended(
    accepted: Sequence[tuple[Reply, StepView, Change]], blamed: Mapping[int, int]
) -> None:
    if not accepted:
        return
    replies = [reply for reply, _, _ in accepted]
    written = sql.run(
        ENDED,
        {
            "ids": [reply.step for reply in replies],
            "attempts": [reply.attempt for reply in replies],
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
    if len(written) < len(replies):
        raise Overtaken("a step has changed under its task's lock: its reply is looked at again")


def _keep_refused(refused: Sequence[tuple[Reply, Refusal]], changes: dict[UUID, Change]) -> None:
    """Keep what a late or repeated reply said: it may matter to whoever looks into the task."""
    events = defaultdict(list)
    for reply, refusal in refused:
        change = changes.get(UUID(reply.task))
        if change and reply.step in change.steps:
            said = f"{reply.outcome} {reply.code}".strip()
            events[reply.step, reply.attempt, f"{refusal.value}; it said: {said}"].append(reply)
    Event.objects.bulk_create(
        Event(
            task_id=UUID(replies[0].task),
            step_id=step,
            kind=EventKind.REPLY_REFUSED,
            actor=replies[0].by,
            attempt=attempt,
            reason=reason,
        )
        for (step, attempt, reason), replies in events.items()
    )
