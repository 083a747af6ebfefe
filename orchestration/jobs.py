"""The functions that doorbells run: primitives in, delegate, return. Nothing else runs as a job."""

import threading
import time
from collections.abc import Callable, Sequence

from . import conf, instance, queues, registry, scheduler, sql, status, submission
from .agents.runtime import Runtime


def take_submissions() -> None:
    """Answer the submission queue: make tasks of what was posted."""

    def turn(_: Sequence[bytes]) -> None:
        more = True
        while more and not _stopping.is_set():
            done = submission.take(conf.BATCH)
            more = done == conf.BATCH
            if done:
                queues.try_to_ring(queues.SCHEDULER)

    _attend(queues.SUBMISSION, turn)


def schedule() -> None:
    """Answer the schedulers' queue: record replies and dispatch what may run next."""

    def turn(messages: Sequence[bytes]) -> None:
        replies = [message for message in messages if message != queues.LOOK]
        look_at = set(registry.agents) if len(replies) < len(messages) else set()
        try:
            more = True
            while more:
                look_at = scheduler.turn(instance.name(), replies, look_at)
                replies = []
                more = bool(look_at) and not _stopping.is_set()
        except sql.DATABASE_AWAY:
            if replies:  # nothing was recorded: keep the replies for whoever comes next
                queues.ring(queues.SCHEDULER, replies)
            raise

    _attend(queues.SCHEDULER, turn)


def call_agent(agent: str) -> None:
    """Answer an agent's queue: perform requests until there are none."""
    runtime(agent).serve()


def deliver_status(application: str) -> None:
    """Answer an application's private response queue."""

    def turn(_: Sequence[bytes]) -> None:
        more = True
        while more and not _stopping.is_set():
            more = status.deliver(application, conf.BATCH) == conf.BATCH

    _attend(queues.STATUS_PREFIX + application, turn)


def _attend(queue: str, turn: Callable[[Sequence[bytes]], None]) -> None:
    """Look once, then serve a queue's inbox until it has stayed empty for a while.

    Turns keep a distance: what comes in meanwhile is one batch, and a turn for each message would
    cost many times as much. The doorbell is cleared before the last look.
    """
    messages: Sequence[bytes] = [queues.LOOK]
    leaving = False
    while messages or not leaving:
        leaving = not messages
        if leaving:
            queues.leave(queue)
        else:
            started = time.monotonic()
            turn(messages)
            _stopping.wait(max(0.0, started + conf.PACE - time.monotonic()))
        if _stopping.is_set():  # what else is there is for another worker
            queues.leave(queue)
            queues.try_to_ring(queue)
            return
        messages = queues.take(queue, conf.BATCH, 0 if leaving else conf.LINGER)


def stop() -> None:
    """Have whatever attends finish what is at hand, take no more, and leave."""
    _stopping.set()
    for served in _runtimes.values():
        served.stopping = True


_stopping = threading.Event()
_runtimes: dict[str, Runtime] = {}


def runtime(agent: str) -> Runtime:
    """Return this process's runtime of an agent, with its event loop and connections."""
    if agent not in _runtimes:
        _runtimes[agent] = Runtime(registry.get(registry.agents, "agent", agent)(instance.name()))
        _runtimes[agent].stopping = _stopping.is_set()
    return _runtimes[agent]


def close_runtimes() -> None:
    """Close the connections and loops of this process's agents."""
    while _runtimes:
        _runtimes.popitem()[1].close()
