"""The functions that doorbells run: primitives in, delegate, return. Nothing else runs as a job."""

import threading
import time
from collections.abc import Callable, Sequence

from django.db import connection

from . import (
    audit,
    conf,
    instance,
    notices,
    push,
    queues,
    registry,
    scheduler,
    status,
    submission,
)
from .agents.runtime import Runtime
from .interface import requests


def take_submissions() -> None:
    """Answer the submission queue: make tasks of what was posted."""

    def turn(_: Sequence[bytes]) -> None:
        more = True
        while more and not _stopping.is_set():
            done = submission.take(conf.BATCH) + requests.take(conf.BATCH)
            more = done >= conf.BATCH
            if done:
                queues.try_to_ring(queues.SCHEDULER)

    _attend(queues.SUBMISSION, turn)


def schedule() -> None:
    """Answer the schedulers' queue: record replies and dispatch what may run next."""

    def turn(messages: Sequence[bytes]) -> float | None:
        replies = [message for message in messages if message != queues.LOOK]
        looks = len(replies) < len(messages)
        look_at = scheduler.all_agents() if looks else set()
        again_in = None
        more = True
        while more:
            done = scheduler.turn(instance.name(queues.SCHEDULER), replies, look_at)
            look_at, again_in, replies = done.more, done.again_in, []
            if looks:
                look_at |= scheduler.begin_undos()
                looks = False
            more = bool(look_at) and not _stopping.is_set()
        return again_in

    _attend(queues.SCHEDULER, turn)


def call_agent(agent: str) -> None:
    """Answer an agent's queue: perform requests until there are none."""
    runtime(agent).serve()


def deliver_status(application: str) -> None:
    """Answer an application's private response queue."""

    def turn(_: Sequence[bytes]) -> None:
        more = True
        while more and not _stopping.is_set():
            more = status.deliver(application, conf.BATCH) >= conf.BATCH

    _attend(queues.STATUS_PREFIX + application, turn)


def send_notices() -> None:
    """Answer the alerts' queue: tell people of alerts."""

    def turn(_: Sequence[bytes]) -> None:
        more = True
        while more and not _stopping.is_set():
            more = notices.send_due() == conf.NOTICES

    _attend(queues.ALERTS, turn)


def push_status() -> None:
    """Answer the pushes' queue: send status messages to the applications that want them sent."""

    def turn(_: Sequence[bytes]) -> None:
        # what was taken makes way for the next message of the same task
        while not _stopping.is_set() and push.send_due():
            pass

    _attend(queues.PUSH, turn)


def run_audit() -> None:
    """Answer the audit's queue: audit everything, if it is time."""

    def turn(_: Sequence[bytes]) -> None:
        audit.run(audit.HOURLY)
        connection.close()  # the next is an hour away

    _attend(queues.AUDIT, turn)


def _attend(queue: str, turn: Callable[[Sequence[bytes]], float | None]) -> None:
    """Look once, then serve a queue's inbox until it has stayed empty for a while.

    Turns keep a distance: what comes in meanwhile is one batch, and a turn for each message would
    cost many times as much. The doorbell is cleared before the last look. A turn may return the
    seconds after which it wants to look again, message or not; what is further off is rung for.
    """
    messages: Sequence[bytes] = [queues.LOOK]
    leaving = False
    again_in: float | None = None
    while messages or not leaving:
        leaving = not messages
        if leaving:
            queues.leave(queue)
        else:
            started = time.monotonic()
            again_in = turn(messages)
            _stopping.wait(max(0.0, started + conf.PACE - time.monotonic()))
        if _stopping.is_set():  # what else is there is for another worker
            queues.leave(queue)
            queues.try_to_ring(queue)
            return
        soon = again_in is not None and again_in < conf.LINGER and not leaving
        wait = max(again_in or 0.0, conf.PACE) if soon else conf.LINGER
        messages = queues.take(queue, conf.BATCH, 0 if leaving else wait)
        if soon and not messages:
            messages = [queues.LOOK]


def stop() -> None:
    """Have whatever attends in this process finish what is at hand, take no more, and leave."""
    _stopping.set()
    for served in list(_runtimes.values()):  # other threads may begin to serve an agent meanwhile
        served.stop()


def stopping() -> bool:
    """Return whether this process was asked to stop."""
    return _stopping.is_set()


_stopping = threading.Event()
_runtimes: dict[str, Runtime] = {}


def runtime(agent: str) -> Runtime:
    """Return this process's runtime of an agent, with its event loop and connections."""
    if agent not in _runtimes:
        kind = registry.get(registry.agents, "agent", agent)
        _runtimes[agent] = Runtime(kind(instance.name(agent)))
        if _stopping.is_set():
            _runtimes[agent].stop()
    return _runtimes[agent]


def stepped_back(queue: str) -> float | None:
    """Return since when this process's instance of an agent has stepped back, if it has."""
    served = _runtimes.get(queue)
    return served.part.back_since if served else None


def rest(queue: str) -> None:
    """Give back what is not needed while nothing is to be done for a queue."""
    if served := _runtimes.get(queue):
        served.rest()


def close_runtimes() -> None:
    """Close the connections and loops of this process's agents."""
    while _runtimes:
        _runtimes.popitem()[1].close()
