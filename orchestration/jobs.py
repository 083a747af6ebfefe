"""The functions that doorbells run: primitives in, delegate, return. Nothing else runs as a job."""

import logging
from collections.abc import Callable, Sequence

from django.db import InterfaceError, OperationalError

from . import conf, instance, queues, registry, scheduler, status, submission
from .agents.runtime import Runtime

logger = logging.getLogger(__name__)

DATABASE_AWAY = (OperationalError, InterfaceError)


def take_submissions() -> None:
    """Answer the submission queue: take batches until there are none."""
    _until_quiet(queues.SUBMISSION, lambda: submission.take(conf.BATCH), queues.SCHEDULER)


def schedule() -> None:
    """Answer the schedulers' queue: record replies and dispatch, until there is nothing to do."""
    look_at = set(registry.agents)
    leaving = False
    while True:
        wait = 0 if look_at or leaving else conf.LINGER
        messages = queues.take(queues.SCHEDULER, conf.BATCH, wait)
        if queues.LOOK in messages:
            messages = [message for message in messages if message != queues.LOOK]
            look_at = set(registry.agents)
        if messages or look_at:
            look_at = _turn(messages, look_at)
            leaving = False
        elif leaving:
            return
        else:
            queues.leave(queues.SCHEDULER)
            leaving = True


def _turn(messages: Sequence[bytes], look_at: set[str]) -> set[str]:
    try:
        return scheduler.turn(instance.name(), messages, look_at)
    except DATABASE_AWAY:
        if messages:  # nothing was recorded: keep the replies for whoever comes next
            queues.ring(queues.SCHEDULER, messages)
        raise


def call_agent(agent: str) -> None:
    """Answer an agent's queue: perform requests until there are none."""
    runtime(agent).serve()


def deliver_status(application: str) -> None:
    """Answer an application's private response queue."""
    name = queues.STATUS_PREFIX + application
    _until_quiet(name, lambda: status.deliver(application, conf.BATCH))


_runtimes: dict[str, Runtime] = {}


def runtime(agent: str) -> Runtime:
    """Return this process's runtime of an agent, with its event loop and connections."""
    if agent not in _runtimes:
        _runtimes[agent] = Runtime(registry.get(registry.agents, "agent", agent)(instance.name()))
    return _runtimes[agent]


def close_runtimes() -> None:
    """Close the connections and loops of this process's agents."""
    while _runtimes:
        _runtimes.popitem()[1].close()


def _until_quiet(queue: str, work: Callable[[], int], then: str = "") -> None:
    """Clear the doorbell, then work until a batch is not full; ring for `then` after each batch."""
    queues.leave(queue)
    while done := work():
        if then:
            queues.try_to_ring(then)
        if done < conf.BATCH:
            return
