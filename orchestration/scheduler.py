"""The scheduler: records what agents replied, claims what may run next, sends it (P1, P8, P21–P23).

Steps that need no agent it computes itself. Any number run side by side; one turn is one transaction
over a whole batch.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db import Error, transaction

from . import batches, conf, crashpoints, dead_letters, queues, registry, sql
from .agents.local import perform
from .gate import Heard
from .lasting import Pauses
from .loading import Wanted, fill_in
from .messages import Malformed, Reply, Request, with_number
from .states import LOCAL
from .transitions.claim import Claimed, claim
from .transitions.holds import park
from .transitions.local import Computed, compute
from .transitions.record import Recorded, record
from .transitions.requested import Begun, begin_requested, requested_tasks

logger = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Turn:
    """What a turn leaves to be done.

    `more` are the agents to claim for again at once; `again_in` is the seconds until a gate lets more
    through by itself, if that is soon.
    """

    more: set[str] = field(default_factory=set)
    again_in: float | None = None


@dataclass(frozen=True, kw_only=True)
class _Popped:
    """A reply, as it was taken from the inbox and as it was understood."""

    raw: bytes
    reply: Reply


def turn(by: str, raw_replies: Sequence[bytes], look_at: Collection[str]) -> Turn:
    """Record `raw_replies`, then claim for the agents they touched and those in `look_at`.

    Each reply is recorded, kept as a dead letter, or back in the inbox, whatever is raised. The
    requests go out after the commit: what is never sent expires, and is tried again.
    """
    popped = [one for raw in raw_replies if (one := _parse(raw))]
    recorded, claimed = _record_and_claim(by, popped, look_at)
    for reply, refusal in recorded.refused:
        logger.info("a reply to attempt %d was refused: %s", reply.attempt, refusal.value)
    crashpoints.reached("scheduler.after_claim", claimed.requests)
    for agent, requests in claimed.requests.items():
        _send(agent, [request for request in requests if request.step not in claimed.loads])
    crashpoints.reached("scheduler.after_send", claimed.requests)
    _notify(recorded.applications)
    if claimed.loads:
        _load_and_send(by, claimed)
    full = {agent for agent, batch in claimed.requests.items() if len(batch) >= conf.BATCH}
    return Turn(more=full | claimed.more, again_in=claimed.again_in)


def _send(agent: str, requests: Sequence[Request]) -> None:
    if requests:
        queues.try_to_ring(agent, [request.dump() for request in requests])


def _load_and_send(by: str, claimed: Claimed) -> None:
    """Send what was claimed and needs to be loaded first; if that fails as a whole, it expires."""
    wanted = [
        Wanted(agent=agent, workflow=workflow, request=request, loads=loads)
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
    for agent, requests in filled.requests.items():
        _send(agent, requests)
    if filled.replies:
        queues.put_back(queues.SCHEDULER, [reply.dump() for reply in filled.replies])


def begin_undos() -> set[str]:
    """Begin the undos that the supervisor asks for; return the agents whose backlog has grown.

    Each by itself if need be: one that fails keeps no other waiting, and is tried again with the next
    look.
    """
    begun = Begun()

    def deal(tasks: Collection[UUID]) -> int:
        found = begin_requested(tasks)
        begun.agents |= found.agents
        begun.applications |= found.applications
        return found.dealt

    _, failing = batches.all_found(requested_tasks, deal, conf.DUTY)
    for task, error in failing.items():
        logger.error("the undo of task %s cannot begin", task, exc_info=error)
    _notify(begun.applications)
    return begun.agents


def _notify(applications: Collection[str]) -> None:
    """Ring for applications that have status messages."""
    for queue in sorted({queues.of_application(name) for name in applications}):
        queues.try_to_ring(queue)


def _record_and_claim(
    by: str, popped: Sequence[_Popped], look_at: Collection[str]
) -> tuple[Recorded, Claimed]:
    """Record and claim in one transaction; if it fails, each by itself: neither spoils the other.

    What locks alerts is committed first: a gate is never waited for under the lock of an alert.
    """
    claimed = None
    try:
        with transaction.atomic():
            recorded = record([one.reply for one in popped]) if popped else Recorded()
            computed = _compute(by, recorded, look_at)
            if not recorded.alerted:
                claimed = claim(
                    _awake(recorded.agents.union(look_at)) - {LOCAL}, by, recorded.heard
                )
    except Exception as error:
        if sql.is_unavailable(error):
            _put_back(popped)
            raise
        logger.warning("a turn is taken in parts: %s", sql.first_line(error))
        recorded = _record_in_parts(popped)
        computed = _compute_apart(by, recorded, look_at)
    else:
        if recorded.locked:
            _put_off([one for one in popped if UUID(one.reply.task) in recorded.locked])
    if claimed is None:
        claimed = _claim_apart(_awake(recorded.agents.union(look_at)) - {LOCAL}, by, recorded.heard)
    if computed.more or (computed.held and park(LOCAL, alone=False)):
        claimed.more.add(LOCAL)
    if computed.blocked:
        claimed.look_again(conf.LOCKED_AGAIN)
    return recorded, claimed


def all_agents() -> set[str]:
    """Return whose steps a look is for: all agents', and those that are computed, if any are."""
    steps = (step for workflow in registry.workflows.values() for step in workflow.steps)
    return {*registry.agents, *([LOCAL] if any(step.compute for step in steps) else ())}


def _compute(by: str, recorded: Recorded, look_at: Collection[str]) -> Computed:
    """Compute the steps that are due, in the transaction that released them; add what was recorded."""
    if LOCAL not in _awake(recorded.agents.union(look_at)):
        return Computed()
    computed = compute(by, perform)
    recorded.add(computed.recorded)
    return computed


def _compute_apart(by: str, recorded: Recorded, look_at: Collection[str]) -> Computed:
    """Compute in a transaction of its own; where that fails, nothing for a while."""
    try:
        with transaction.atomic():
            return _compute(by, recorded, look_at)
    except Exception as error:
        if sql.is_unavailable(error):
            raise
        logger.exception("no step is computed now")
        _paused.begin(LOCAL, conf.CLAIM_PAUSE)
        return Computed()


def _claim_apart(agents: Collection[str], by: str, heard: Mapping[str, Sequence[Heard]]) -> Claimed:
    """Claim in a transaction of its own; where that fails, for each agent by itself.

    Raises what claiming failed with if nothing was claimed: what was has to be sent.
    """
    try:
        return claim(agents, by, heard)
    except Exception as error:
        if sql.is_unavailable(error):
            raise
        logger.warning("a claim is made agent by agent: %s", sql.first_line(error))
    claimed = Claimed()
    for agent in sorted(agents):
        try:
            claimed.add(claim([agent], by, heard))
        except Exception as error:
            if sql.is_busy(error):
                logger.warning("nothing is claimed for %s now: %s", agent, sql.first_line(error))
                _paused.begin(agent, conf.CLAIM_PAUSE)
                claimed.look_again(conf.CLAIM_PAUSE)
            elif claimed.requests:
                logger.exception("nothing is claimed for %s", agent)
            else:
                raise
    return claimed


_paused: Pauses[str] = Pauses()  # agents whose claim met with a lock


def _awake(agents: Collection[str]) -> set[str]:
    """Return those of `agents` whose claim did not meet with a lock just now."""
    return {agent for agent in agents if not _paused.of(agent)}


def _record_in_parts(popped: Sequence[_Popped]) -> Recorded:
    """Record what can be recorded; keep what fails alone as dead letters, and put back the rest."""
    recorded = Recorded()
    waiting: list[_Popped] = []
    done = 0

    def deal(some: Sequence[_Popped]) -> int:
        nonlocal done
        part = record([one.reply for one in some], warily=True)
        waiting.extend(one for one in some if UUID(one.reply.task) in part.locked)
        recorded.add(part)
        done += len(some)
        return len(some)

    def keep(one: _Popped, error: Exception) -> None:
        nonlocal done
        if sql.is_busy(error):
            waiting.append(one)
        else:
            dead_letters.keep(queues.SCHEDULER, one.raw, error, returned=one.reply.returned)
            logger.error("a reply that cannot be recorded is kept: %s", sql.first_line(error))
        done += 1

    try:
        batches.bisect(popped, deal, keep)
    finally:
        _put_back(popped[done:])  # in their order: these are those that nothing was done about
        _put_off(waiting)
    return recorded


def _put_off(waiting: Sequence[_Popped]) -> None:
    """Have replies come back later that need a row which another session has locked.

    At first they do at once: one of ours holds a lock for a moment only.
    """
    messages = [
        (with_number(one.raw, "waited", min(one.reply.waited + 1, conf.BATCH)), one.reply)
        for one in waiting
    ]
    soon = [raw for raw, reply in messages if reply.waited < conf.LOCKED_AT_ONCE]
    late = [(raw, reply) for raw, reply in messages if reply.waited >= conf.LOCKED_AT_ONCE]
    if soon:
        queues.put_back(queues.SCHEDULER, soon)
    if late:
        try:
            dead_letters.put_off(queues.SCHEDULER, late, "another session has locked its task")
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
