"""The scheduler: records replies, claims the next steps, sends requests (P1, P8, P21–P23).

It computes steps that need no agent itself. Any number of schedulers run side by side; one turn is one
transaction over a whole batch. If it fails, its parts are tried: the replies, the steps to compute and
the agents to claim for, each in halves until what fails is alone.
"""

import logging
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field

from django.db import Error, transaction

from . import conf, registry
from .agents.local import perform
from .applications.status_messages import queue_of
from .cluster import crash_points
from .cluster.debounce import Pauses
from .database import batches, sql
from .dead_letters import capture, reply_inbox
from .dead_letters.reply_inbox import PoppedReply
from .decisions.gate import Observation
from .messaging import queues
from .messaging.messages import Request
from .states import LOCAL
from .tracing.subject import about_task
from .transitions.claim import Claimed, claim
from .transitions.foreign_locks import with_locked_steps
from .transitions.holds import park
from .transitions.loading import fill_in
from .transitions.local_steps import Computed, compute, listed, postpone
from .transitions.replies import Recorded, decide

logger = logging.getLogger(__name__)


@dataclass(kw_only=True)
class TurnResult:
    """What is left to do after a run.

    `more` are the agents to claim for again at once. `again_in` is the seconds until a gate admits more
    requests, if that is soon.
    """

    more: set[str] = field(default_factory=set)
    again_in: float | None = None


@dataclass(kw_only=True)
class _Committed:
    """What the transactions of a turn have committed, for what is done after them."""

    by: str
    claimed: Claimed = field(default_factory=Claimed)
    unclaimed: set[str] = field(default_factory=set)  # agents to claim for in another transaction
    observed: dict[str, list[Observation]] = field(default_factory=dict)  # for the gates of these
    applications: set[str] = field(default_factory=set)  # those with new status messages
    postponed: list[PoppedReply] = field(default_factory=list)  # their rows others have locked
    held: bool = False  # steps to compute that are held were met
    reported: bool = False  # there is more to do for `scheduler_duties`


def run_once(by: str, raw_replies: Sequence[bytes], agents: Collection[str]) -> TurnResult:
    """Record `raw_replies`, then claim for the agents they touched and those in `agents`.

    Each reply is recorded, kept as a dead letter, or returned to the inbox, even if this raises. Requests
    are sent after the commit: a request that is never sent expires, and its step is retried.
    """
    popped = reply_inbox.parse(raw_replies)
    done = _Committed(by=by)
    try:
        _run(done, popped, agents)
    finally:
        claimed = done.claimed
        crash_points.reached("scheduler.after_claim", claimed.requests)
        _send(claimed.requests, claimed.loads)
        crash_points.reached("scheduler.after_send", claimed.requests)
        _notify(done.applications)
        if done.reported:
            queues.try_to_ring(queues.SCHEDULER)  # for `scheduler_duties`
            queues.try_to_ring(queues.SUBMISSION)  # for reports by the service's own id
    if claimed.loads:
        _load_and_send(by, claimed)
    if done.held and park(LOCAL, isolated=False):
        claimed.more.add(LOCAL)
    full = {agent for agent, batch in claimed.requests.items() if len(batch) >= conf.BATCH_SIZE}
    return TurnResult(more=full | claimed.more, again_in=claimed.again_in)


def _run(done: _Committed, popped: Sequence[PoppedReply], agents: Collection[str]) -> None:
    """Take a turn; if it fails, take its parts."""
    try:
        _take(done, popped, agents=agents, whole=True)
    except Exception as error:
        if sql.is_unavailable(error):
            reply_inbox.put_back(popped)
            raise
        logger.warning("a turn is split: %s", sql.first_line(error))
        done.unclaimed |= set(agents)
        _record_in_parts(done, popped, error)
    else:
        reply_inbox.postpone(done.postponed)
    if LOCAL in _awake(done.unclaimed):
        _compute_in_parts(done)
    _claim_in_parts(done)


def _take(
    done: _Committed,
    popped: Sequence[PoppedReply] = (),
    *,
    steps: Sequence[int] | None = None,
    agents: Collection[str] = (),
    whole: bool = False,
) -> None:
    """Record replies, compute `steps`, and claim for `agents`, in one transaction.

    A `whole` turn goes on with what follows: it computes the steps that become ready, or that wait if LOCAL
    is among the agents, and claims for the agents that are touched. After a part these are left. No agent
    is claimed for while alerts are locked: a claim waits for gates.
    """
    recorded, computed = Recorded(), Computed()
    with transaction.atomic():
        decide([item.reply for item in popped], recorded)
        if steps is not None:
            computed = compute(done.by, perform, recorded, waiting=True, only=steps)
        elif whole and not _paused.of(LOCAL):
            computed = compute(done.by, perform, recorded, waiting=LOCAL in agents)
        recorded.write()
        touched = recorded.agents | set(agents)
        claiming = set() if recorded.alerted else touched if whole else set(agents)
        observed = {
            agent: [*done.observed.get(agent, ()), *recorded.observed.get(agent, ())]
            for agent in done.observed.keys() | recorded.observed.keys()
        }
        claimed = claim(_awake(claiming) - {LOCAL}, done.by, observed, recorded.ready)
    done.claimed.add(claimed)
    done.unclaimed = (done.unclaimed | touched) - claiming - ({LOCAL} if whole else set())
    done.observed = {agent: observed[agent] for agent in observed.keys() - claiming}
    done.applications |= recorded.applications
    done.postponed += [item for item in popped if item.reply.task in recorded.locked]
    done.held |= computed.held
    done.reported |= recorded.reported
    if computed.more:
        done.claimed.more.add(LOCAL)
    if computed.blocked:
        done.claimed.look_again(conf.LOCKED_GATE_RETRY_S)
    for reply, refusal in recorded.refused:
        about = about_task(reply.task, reply.attempt)
        logger.info(
            "a reply to attempt %d was refused: %s", reply.attempt, refusal.value, extra=about
        )


def all_agents() -> set[str]:
    """Return all agents, and LOCAL if any workflow has steps that are computed, or have children."""
    steps = (step for workflow in registry.workflows.values() for step in workflow.steps)
    return {
        *registry.agents,
        *([LOCAL] if any(step.compute or step.workflow for step in steps) else ()),
    }


def _record_in_parts(done: _Committed, popped: Sequence[PoppedReply], error: Exception) -> None:
    """Record replies one by one where necessary; keep failing ones as dead letters, return the rest."""
    handled = 0

    def deal(part: Sequence[PoppedReply]) -> int:
        nonlocal handled
        _take(done, part)
        handled += len(part)
        return len(part)

    def set_aside(item: PoppedReply, error: Exception) -> None:
        nonlocal handled
        if sql.is_busy(error):
            done.postponed.append(item)
        else:
            capture.store(queues.SCHEDULER, item.raw, error, returned=item.reply.returned)
            about = about_task(item.reply.task, item.reply.attempt)
            logger.error(
                "a reply that cannot be recorded is kept: %s", sql.first_line(error), extra=about
            )
        handled += 1

    try:
        if sql.is_busy(error):
            locked = with_locked_steps({item.reply.task for item in popped})
            done.postponed += [item for item in popped if item.reply.task in locked]
            popped = [item for item in popped if item.reply.task not in locked]
        batches.bisect(popped, deal, set_aside)
    finally:
        reply_inbox.put_back(popped[handled:])  # the untouched ones, in their order
        reply_inbox.postpone(done.postponed)


def _compute_in_parts(done: _Committed) -> None:
    """Compute the steps that wait; one whose result cannot be recorded waits longer, by itself."""
    done.unclaimed.discard(LOCAL)

    def deal(part: Sequence[int]) -> int:
        _take(done, steps=part)
        return len(part)

    def set_aside(step: int, error: Exception) -> None:
        if sql.is_busy(error):
            done.claimed.look_again(conf.LOCKED_GATE_RETRY_S)
            return
        why = sql.first_line(error)
        logger.error("what step %d was computed to cannot be recorded: %s", step, why)
        postpone(step, why)

    try:
        steps = listed()
        batches.bisect(steps, deal, set_aside, patience=len(steps))
    except Exception as error:
        if sql.is_unavailable(error):
            raise
        logger.exception("no step is computed now")
        _paused.begin(LOCAL, conf.CLAIM_PAUSE_S)
    if LOCAL in done.unclaimed:  # what these have released
        done.claimed.more.add(LOCAL)


def _claim_in_parts(done: _Committed) -> None:
    """Claim for the agents that are left; pause the claim for an agent whose rows others have locked."""

    def deal(part: Sequence[str]) -> int:
        _take(done, agents=part)
        return len(part)

    def set_aside(agent: str, error: Exception) -> None:
        if sql.is_busy(error):
            logger.warning("nothing is claimed for %s now: %s", agent, sql.first_line(error))
            _paused.begin(agent, conf.CLAIM_PAUSE_S)
            done.claimed.look_again(conf.CLAIM_PAUSE_S)
        elif done.claimed.requests:
            logger.error("nothing is claimed for %s", agent, exc_info=error)
        else:
            raise error

    agents = sorted(_awake(done.unclaimed) - {LOCAL})
    batches.bisect(agents, deal, set_aside, patience=len(agents))


_paused: Pauses[str] = Pauses()  # agents whose claim met a lock


def _awake(agents: Collection[str]) -> set[str]:
    """Return the agents to claim for, without those that are paused because of a lock."""
    return {agent for agent in agents if not _paused.of(agent)}


def _notify(applications: Collection[str]) -> None:
    """Ring for applications with new status messages."""
    queues.try_to_ring_all(dict.fromkeys(map(queue_of, applications), ()))


def _send(requests: Mapping[str, Sequence[Request]], without: Container[int] = ()) -> None:
    """Send requests to their agents, `without` those of some steps."""
    messages = {
        agent: [request.dump() for request in batch if request.step not in without]
        for agent, batch in requests.items()
    }
    queues.try_to_ring_all({agent: batch for agent, batch in messages.items() if batch})


def _load_and_send(by: str, claimed: Claimed) -> None:
    """Load and send requests with values to load; if all loading fails, the steps expire."""
    unfilled = claimed.unfilled
    try:
        filled = fill_in(unfilled, by)
    except Error as error:
        logger.warning("%d requests are not sent: %s", len(unfilled), sql.first_line(error))
        if sql.is_unavailable(error):
            raise
        return
    _send(filled.requests)
    if filled.replies:
        queues.put_back(queues.SCHEDULER, [reply.dump() for reply in filled.replies])
