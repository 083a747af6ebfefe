"""Record the replies to attempts: processing → processed, or error, or failed (P8, P23, P25)."""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db import transaction

from ..decisions.gate import Observation
from ..decisions.progress import Refusal, StepView, after_reply, refuse_reply
from ..decisions.recovery import INSTANCE_SICK
from ..incidents import tallies
from ..messaging.messages import Reply
from ..models import Event
from ..models.history import EventKind
from ..payloads.placeholders import Unresolved
from ..states import ANSWERED, LOCAL, Direction, Health, Outcome, StepState
from . import evidence, looks, moves, reports, waits
from .change import Change, Ready
from .foreign_locks import existing
from .late_effects import close_undone, detect_late_effects
from .locked_task import lock
from .rejections import Rejection, reject
from .settle import release_ready, settle
from .waits import NewWait, Until

logger = logging.getLogger(__name__)

BY = "agent"
# as what an attempt ends; what has another outcome is processing until it is counted or cancelled
ENDS_AS: Mapping[str, StepState] = {
    Outcome.DONE: StepState.PROCESSED,
    Outcome.LATER: StepState.AWAITING,
}


@dataclass(kw_only=True)
class Recorded:
    """What is decided about a batch of replies, and what recording it did."""

    changes: dict[UUID, Change] = field(default_factory=dict)  # the tasks that are locked
    touched: dict[UUID, Change] = field(default_factory=dict)  # those with something to write
    ended: list[tuple[Reply, StepView, Change]] = field(default_factory=list)  # accepted replies
    refused: list[tuple[Reply, Refusal]] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)  # whose window or backlog changed
    applications: set[str] = field(default_factory=set)  # those with new status messages
    observed: dict[str, list[Observation]] = field(default_factory=lambda: defaultdict(list))
    locked: set[UUID] = field(default_factory=set)  # tasks whose replies have to wait
    alerted: bool = False  # locks of alerts are held until the commit
    reported: bool = False  # schedulers have more to do: `Consequences`
    ready: list[Ready] = field(default_factory=list)  # the caller writes or claims them

    @property
    def accepted(self) -> int:
        """Return how many replies were accepted."""
        return len(self.ended)

    def write(self) -> None:
        """Write what was decided, and what follows, but for the steps that are ready."""
        follows = settle(self.touched.values(), by=BY)
        evidence.write([reply for reply, _, _ in self.ended])
        reports.attempts(self.ended)
        others = [change for task, change in self.changes.items() if task not in self.touched]
        Event.objects.bulk_create([event for change in others for event in change.events])
        self.alerted |= follows.alerted
        self.reported |= follows.reported
        self.applications = follows.applications
        self.ready = follows.ready
        self.agents |= follows.agents


@transaction.atomic(savepoint=False)
def record(replies: Sequence[Reply]) -> Recorded:
    """Record the outcomes of attempts, make successors pending, finish tasks."""
    recorded = Recorded()
    decide(replies, recorded)
    recorded.write()
    release_ready(recorded.ready)
    return recorded


def decide(replies: Sequence[Reply], recorded: Recorded) -> None:
    """Lock the tasks of replies; decide about each reply, and note in their changes what is to be written.

    Waits for no lock: replies to a task that another session has locked are left out, and so are
    rejections whose incident or alert is locked.

    Guarded by state and attempt under the task's lock: the first of several replies to one attempt is
    recorded; a reply to an attempt that was given up changes nothing and is kept as an event. An attempt
    ends when the supervisor has counted it, not at its complete-by time: a reply that was sent in time
    and is read later is accepted while the step is still at that attempt.
    A transient or unknown outcome leaves the step `processing` with its deadline passed: the
    supervisor counts it, and decides (P24, P26). A rejection is an error, or the undo of the whole
    task, as the agent's policy says.
    """
    tasks = {reply.task for reply in replies}
    changes = lock(tasks, wait=False)
    recorded.locked |= existing(tasks - changes.keys())
    recorded.locked |= locked_causes(replies, changes)
    free = [reply for reply in replies if reply.task not in recorded.locked]
    # by the locks of their causes
    recorded.alerted |= any(reply.outcome == Outcome.REJECTED for reply in free)
    recorded.changes |= {
        task: change for task, change in changes.items() if task not in recorded.locked
    }
    apply(free, recorded)


def locked_causes(replies: Iterable[Reply], changes: Mapping[UUID, Change]) -> set[UUID]:
    """Lock the causes of rejections; return the tasks of those that another session has locked."""
    causes = {}
    for reply in replies:
        change = changes.get(reply.task)
        step = change.steps.get(reply.step) if change else None
        if change and step and reply.outcome == Outcome.REJECTED:
            cause = change.cause(step, reply.outcome, reply.code, reply.message)
            causes[change.id, cause.fingerprint] = cause
    waiting = tallies.lock(causes.values())
    return {task for task, fingerprint in causes if fingerprint in waiting}


def apply(replies: Sequence[Reply], recorded: Recorded) -> None:
    """Decide about replies to steps of locked tasks."""
    rejected: list[Rejection] = []
    refused: list[tuple[Reply, Refusal]] = []
    looked: list[tuple[Reply, Change, StepView]] = []
    for reply in replies:
        change = recorded.changes.get(reply.task)
        step = change.steps.get(reply.step) if change else None
        if reply.look:
            looked += [(reply, change, step)] if change and step else []
            continue
        refusal = refuse_reply(step, reply.attempt, reply.generation, reply.dispatch)
        if refusal or change is None or step is None:
            refused.append((reply, refusal or Refusal.NO_SUCH_STEP))
            continue
        recorded.touched[change.id] = change
        recorded.agents.add(step.agent)
        after = _accept(reply, change, step)
        recorded.ended.append((reply, after, change))
        if not (step.own_trouble and after.state == StepState.PROCESSING):
            recorded.observed[step.agent].append(_observation(reply, step))
        if after.state == StepState.ERROR:
            rejected.append(Rejection(change, after, reply.code, reply.message))
    reject(rejected, by=BY)
    for change in looks.answer(looked) if looked else ():
        recorded.touched[change.id] = change
    late = detect_late_effects([reply for reply, _ in refused], recorded.changes, by=BY)
    for change, step in late:
        recorded.touched[change.id] = change
        recorded.agents.add(step.agent)
    _note_refused(refused, recorded)
    recorded.refused += refused


def _accept(reply: Reply, change: Change, step: StepView) -> StepView:
    """Have a step's attempt end; return the step as it is to be.

    One that is rejected has ended then, and is at the attempt still: what follows depends on its policy.
    """
    after = after_reply(
        step, reply.outcome, reply.result,
        undoing=change.undoes(step), in_doubt=reply.in_doubt, code=reply.code[:100],
    )  # fmt: skip
    not_the_service = reply.health == Health.NOTHING and reply.code != INSTANCE_SICK
    if not_the_service and after.state == StepState.PROCESSING:
        after = after.altered(own_trouble=True)  # an outage of the service does not excuse it
    done = after.state == StepState.PROCESSED
    change.move(
        moves.ENDED,
        after.altered(state=ENDS_AS.get(reply.outcome, StepState.PROCESSING)),
        outcome=reply.outcome,
        result=reply.result,
        code=after.error_code,
        message=reply.message,
        tries=reply.tries,
        started=reply.started,
        by=reply.by[:80],
        incident=None,
        in_doubt=after.in_doubt,
        retry_after=reply.retry_after,
        own_trouble=after.own_trouble,
    )
    if done and step.direction == Direction.UNDO:
        close_undone(after, change)
    elif after.outcome == Outcome.LATER:
        _accepted(reply, change, after)
    elif after.state == StepState.SKIPPED:  # its workflow passes over this refusal
        change.skip(after)
    elif after.state == StepState.CANCELLED:  # its task is being undone, and it had no effect
        change.cancel(after)
        reason = f"the service answered: {after.outcome}"
        change.note(after, EventKind.SETTLED, by=BY, reason=reason)
    elif after.state == StepState.ERROR:
        cause = change.cause(after, reply.outcome, reply.code, reply.message)
        change.count(after, cause, reply.message)
    return after


def _accepted(reply: Reply, change: Change, step: StepView) -> None:
    """Have a step await what its service accepted; if its task is being undone, that is undone too."""
    if step.agent == LOCAL and (step.flow is None or step.flow.ends_within is None):
        return  # its children have times of their own
    external_id, look = (reply.wait.id, reply.wait.look) if reply.wait else ("", None)
    if external_id:
        change.accepted.append((step, external_id))
    if step.state == StepState.CANCELLED:
        change.cancel(step)
        change.note(step, EventKind.SETTLED, by=BY, reason="the service accepted it: it is undone")
        return
    try:
        until = waits.ends_by(step, change.steps.values(), change.data)
    except Unresolved as error:  # it was accepted all the same
        logger.error("%s of %s: %s", step.name, change.reference, error)
        until = Until.after(waits.DEFAULT_S)
    change.opened.append(NewWait(step=step, until=until, external_id=external_id, look=look))


def _observation(reply: Reply, step: StepView) -> Observation:
    """Return what a reply shows of the service's health; without a word of the agent, by its outcome."""
    good = Health.GOOD if reply.outcome in ANSWERED else Health.BAD
    return Observation(
        health=reply.health or good,
        sent_at=step.dispatch / 1e6,
        retry_after=reply.retry_after,
    )


def _note_refused(refused: Collection[tuple[Reply, Refusal]], recorded: Recorded) -> None:
    """Write the content of late and repeated replies to the task's history."""
    noted = set()
    for reply, refusal in refused:
        change = recorded.changes.get(reply.task)
        step = change.steps.get(reply.step) if change else None
        if change is None or step is None:
            continue
        content = f"{reply.outcome} {reply.code}".strip()
        reason = f"{refusal.value}; it was: {content}"
        if (reply.step, reply.attempt, reason) in noted:
            continue
        noted.add((reply.step, reply.attempt, reason))
        event = change.note(step, EventKind.REPLY_REFUSED, by=reply.by, reason=reason)
        event.attempt = reply.attempt
