"""The scheduler: records replies, claims the next steps, sends requests (P1, P8, P21–P23).

It computes steps that need no agent itself. Any number of schedulers run side by side; one run is one
transaction over a whole batch.
"""

import logging
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db import Error, transaction

from . import conf, registry
from .agents.local import perform
from .applications.status_messages import queue_of
from .cluster import crash_points
from .cluster.debounce import Pauses
from .database import batches, sql
from .dead_letters import capture
from .messaging import queues
from .messaging.messages import Malformed, Reply, Request, with_number
from .states import LOCAL
from .tracing.subject import about_task
from .transitions.claim import Claimed, claim
from .transitions.holds import park
from .transitions.loading import UnfilledRequest, fill_in
from .transitions.local_steps import Computed, compute
from .transitions.locked_task import Ready, release_ready
from .transitions.replies import Recorded, record
from .transitions.requested_undos import Begun, begin_requested, requested_tasks

logger = logging.getLogger(__name__)


@dataclass(kw_only=True)
class TurnResult:
    """What is left to do after a run.

    `more` are the agents to claim for again at once. `again_in` is the seconds until a gate admits more
    requests, if that is soon.
    """

    more: set[str] = field(default_factory=set)
    again_in: float | None = None


@dataclass(frozen=True, kw_only=True)
class _Popped:
    """A reply, as raw bytes from the inbox and parsed."""

    raw: bytes
    reply: Reply


def run_once(by: str, raw_replies: Sequence[bytes], agents: Collection[str]) -> TurnResult:
    """Record `raw_replies`, then claim for the agents they touched and those in `agents`.

    Each reply is recorded, kept as a dead letter, or returned to the inbox, even if this raises. Requests
    are sent after the commit: a request that is never sent expires, and its step is retried.
    """
    popped = [one for raw in raw_replies if (one := _parse(raw))]
    recorded, claimed = _record_and_claim(by, popped, agents)
    for reply, refusal in recorded.refused:
        about = about_task(reply.task, reply.attempt)
        logger.info(
            "a reply to attempt %d was refused: %s", reply.attempt, refusal.value, extra=about
        )
    crash_points.reached("scheduler.after_claim", claimed.requests)
    _send(claimed.requests, claimed.loads)
    crash_points.reached("scheduler.after_send", claimed.requests)
    _notify(recorded.applications)
    if claimed.loads:
        _load_and_send(by, claimed)
    full = {agent for agent, batch in claimed.requests.items() if len(batch) >= conf.BATCH_SIZE}
    return TurnResult(more=full | claimed.more, again_in=claimed.again_in)


def _send(requests: Mapping[str, Sequence[Request]], without: Container[int] = ()) -> None:
    """Send requests to their agents, `without` those of some steps."""
    messages = {
        agent: [request.dump() for request in some if request.step not in without]
        for agent, some in requests.items()
    }
    queues.try_to_ring_all({agent: some for agent, some in messages.items() if some})


def _load_and_send(by: str, claimed: Claimed) -> None:
    """Load and send requests with values to load; if all loading fails, the steps expire."""
    wanted = [
        UnfilledRequest(agent=agent, workflow=workflow, request=request, loads=loads)
        for agent, requests in claimed.requests.items()
        for request in requests
        if request.step in claimed.loads
        for workflow, loads in [claimed.loads[request.step]]
    ]
    try:
        filled = fill_in(wanted, by)
    except Error as error:
        logger.warning("%d requests are not sent: %s", len(wanted), sql.first_line(error))
        if sql.is_unavailable(error):
            raise
        return
    _send(filled.requests)
    if filled.replies:
        queues.put_back(queues.SCHEDULER, [reply.dump() for reply in filled.replies])


def begin_undos() -> set[str]:
    """Begin the undos that the supervisor requested; return the agents whose backlog has grown.

    An undo that fails never blocks the others, and is retried with the next look.
    """
    begun = Begun()

    def deal(tasks: Collection[UUID]) -> int:
        found = begin_requested(tasks)
        begun.agents |= found.agents
        begun.applications |= found.applications
        return found.handled

    _, failing = batches.all_found(requested_tasks, deal, conf.DUTY_BUDGET_S)
    for task, error in failing.items():
        logger.error(
            "the undo of task %s cannot begin", task, exc_info=error, extra=about_task(task)
        )
    _notify(begun.applications)
    return begun.agents


def _notify(applications: Collection[str]) -> None:
    """Ring for applications with new status messages."""
    queues.try_to_ring_all(dict.fromkeys(map(queue_of, applications), ()))


def _record_and_claim(
    by: str, popped: Sequence[_Popped], agents: Collection[str]
) -> tuple[Recorded, Claimed]:
    """Record and claim in one transaction; if it fails, do each in its own transaction."""
    claimed = None
    try:
        recorded, computed, claimed = _take_turn(by, popped, agents)
    except Exception as error:
        if sql.is_unavailable(error):
            _put_back(popped)
            raise
        logger.warning("a run is split: %s", sql.first_line(error))
        recorded = _record_in_parts(popped)
        computed = _compute_apart(by, recorded, agents)
    else:
        if recorded.locked:
            _put_off([one for one in popped if one.reply.task in recorded.locked])
    if claimed is None:
        claimed = _claim_apart(by, recorded, agents)
    if computed.more or (computed.held and park(LOCAL, isolated=False)):
        claimed.more.add(LOCAL)
    if computed.blocked:
        claimed.look_again(conf.LOCKED_GATE_RETRY_S)
    return recorded, claimed


@transaction.atomic
def _take_turn(
    by: str, popped: Sequence[_Popped], agents: Collection[str]
) -> tuple[Recorded, Computed, Claimed | None]:
    """Record, compute and claim in one transaction; return what was committed.

    Replies that lock alerts are committed before the claim, which may wait for a gate: then nothing is
    claimed yet (None). Released steps are written here in any case: after the commit they are anyone's.
    """
    recorded = record([one.reply for one in popped], claimed_next=True) if popped else Recorded()
    computed = _compute(by, recorded, agents)
    recorded.add(computed.recorded)
    ready = recorded.take_ready()
    if recorded.alerted:
        release_ready(ready)
        return recorded, computed, None
    return recorded, computed, _claim(by, recorded, agents, ready)


def all_agents() -> set[str]:
    """Return all agents, and LOCAL if any workflow has computed steps."""
    steps = (step for workflow in registry.workflows.values() for step in workflow.steps)
    return {*registry.agents, *([LOCAL] if any(step.compute for step in steps) else ())}


def _compute(by: str, recorded: Recorded, agents: Collection[str]) -> Computed:
    """Compute the due steps in the transaction that released them."""
    return compute(by, perform) if LOCAL in _awake(recorded, agents) else Computed()


def _compute_apart(by: str, recorded: Recorded, agents: Collection[str]) -> Computed:
    """Compute in a separate transaction; if that fails, pause computing."""
    try:
        with transaction.atomic():
            computed = _compute(by, recorded, agents)
            release_ready(computed.recorded.take_ready())
    except Exception as error:
        if sql.is_unavailable(error):
            raise
        logger.exception("no step is computed now")
        _paused.begin(LOCAL, conf.CLAIM_PAUSE_S)
        return Computed()
    recorded.add(computed.recorded)
    return computed


def _claim(
    by: str, recorded: Recorded, agents: Collection[str], ready: Sequence[Ready] = ()
) -> Claimed:
    """Claim for the agents that are awake; `ready` are steps that this transaction has released."""
    return claim(_awake(recorded, agents) - {LOCAL}, by, recorded.observed, ready)


def _claim_apart(by: str, recorded: Recorded, agents: Collection[str]) -> Claimed:
    """Claim in a separate transaction; if that fails, claim for each agent by itself.

    Raises the error only if nothing was claimed, as claimed requests must be sent.
    """
    try:
        return _claim(by, recorded, agents)
    except Exception as error:
        if sql.is_unavailable(error):
            raise
        logger.warning("a claim is made agent by agent: %s", sql.first_line(error))
    claimed = Claimed()
    for agent in sorted(_awake(recorded, agents) - {LOCAL}):
        try:
            claimed.add(claim([agent], by, recorded.observed))
        except Exception as error:
            if sql.is_busy(error):
                logger.warning("nothing is claimed for %s now: %s", agent, sql.first_line(error))
                _paused.begin(agent, conf.CLAIM_PAUSE_S)
                claimed.look_again(conf.CLAIM_PAUSE_S)
            elif claimed.requests:
                logger.exception("nothing is claimed for %s", agent)
            else:
                raise
    return claimed


_paused: Pauses[str] = Pauses()  # agents whose claim met a lock


def _awake(recorded: Recorded, agents: Collection[str]) -> set[str]:
    """Return the agents to claim for, without those that are paused because of a lock."""
    return {agent for agent in recorded.agents.union(agents) if not _paused.of(agent)}


def _record_in_parts(popped: Sequence[_Popped]) -> Recorded:
    """Record replies one by one where necessary; keep failing ones as dead letters, return the rest."""
    recorded = Recorded()
    waiting: list[_Popped] = []
    done = 0

    def deal(some: Sequence[_Popped]) -> int:
        nonlocal done
        part = record([one.reply for one in some], warily=True)
        waiting.extend(one for one in some if one.reply.task in part.locked)
        recorded.add(part)
        done += len(some)
        return len(some)

    def keep(one: _Popped, error: Exception) -> None:
        nonlocal done
        if sql.is_busy(error):
            waiting.append(one)
        else:
            capture.store(queues.SCHEDULER, one.raw, error, returned=one.reply.returned)
            about = about_task(one.reply.task, one.reply.attempt)
            logger.error(
                "a reply that cannot be recorded is kept: %s", sql.first_line(error), extra=about
            )
        done += 1

    try:
        batches.bisect(popped, deal, keep)
    finally:
        _put_back(popped[done:])  # the untouched ones, in their order
        _put_off(waiting)
    return recorded


def _put_off(waiting: Sequence[_Popped]) -> None:
    """Postpone replies that need a row which another session has locked.

    The first returns are immediate: the engine's own sessions hold locks only briefly.
    """
    messages = [
        (with_number(one.raw, "waited", min(one.reply.waited + 1, conf.BATCH_SIZE)), one.reply)
        for one in waiting
    ]
    soon = [raw for raw, reply in messages if reply.waited < conf.LOCKED_IMMEDIATE_RETURNS]
    late = [
        (raw, reply) for raw, reply in messages if reply.waited >= conf.LOCKED_IMMEDIATE_RETURNS
    ]
    if soon:
        queues.put_back(queues.SCHEDULER, soon)
    if late:
        try:
            capture.postpone(queues.SCHEDULER, late, "another session has locked its task")
        except Exception:
            queues.put_back(queues.SCHEDULER, [raw for raw, _ in late])
            raise


def _put_back(popped: Sequence[_Popped]) -> None:
    if popped:
        queues.put_back(queues.SCHEDULER, [one.raw for one in popped])


def _parse(raw: bytes) -> _Popped | None:
    try:
        return _Popped(raw=raw, reply=Reply.parse(raw))
    except Malformed as error:
        logger.error("a malformed reply was refused: %s", error)
        return None
