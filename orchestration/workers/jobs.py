"""The jobs that doorbells run. They take primitives and delegate; no other job is allowed."""

import logging
import threading
import time
from collections.abc import Iterator, Sequence

from django.db import Error, connection

from .. import conf, registry, scheduler, submission, task_requests
from ..agents.loop_watch import Blocked
from ..agents.runner import Runtime
from ..alerting import alerts, notifications
from ..applications import push, status_messages
from ..cluster import instance
from ..cluster.debounce import Pauses
from ..database import sql
from ..dead_letters import capture
from ..messaging import queues, signing
from ..models.alert import Severity
from . import scheduler_duties

logger = logging.getLogger(__name__)


def take_submissions() -> None:
    """Serve the submission queue: turn submissions into tasks, carry out applications' requests."""
    for _ in (turns := Turns(queues.SUBMISSION)):
        more = True
        while more and turns.may_go_on():
            submitted = submission.take(conf.BATCH_SIZE)
            requested = task_requests.take(conf.BATCH_SIZE)
            if done := submitted + requested.done:
                queues.try_to_ring(queues.SCHEDULER)
            turns.again_in = conf.LOCKED_TASK_RETRY_S if requested.left else None
            more = done >= conf.BATCH_SIZE


def schedule() -> None:
    """Serve the schedulers' queue: record replies and dispatch the next steps."""
    asks = False  # whether services are asked again after a pause, also if replies come meanwhile
    for messages in (turns := Turns(queues.SCHEDULER, 0)):
        replies = [message for message in messages if message != queues.LOOK]
        looks = len(replies) < len(messages)
        look_at = scheduler.all_agents() if looks else set()
        looks |= asks and not _asked.of(queues.SCHEDULER)
        more = True
        while more:
            done = scheduler.run_once(instance.name(queues.SCHEDULER), replies, look_at)
            look_at, replies = done.more, []
            if looks:
                duties = scheduler_duties.run(ask=not _asked.of(queues.SCHEDULER))
                if duties.again_in and not _asked.of(queues.SCHEDULER):
                    _asked.begin(queues.SCHEDULER, duties.again_in)
                look_at |= duties.more
                looks, asks = False, duties.again_in is not None
            ask_in = max(_asked.left(queues.SCHEDULER), conf.TURN_INTERVAL_S) if asks else None
            turns.again_in = min((wait for wait in (done.again_in, ask_in) if wait), default=None)
            more = bool(look_at) and turns.may_go_on()
        _alert_about_forged(queues.SCHEDULER)


_asked: Pauses[str] = Pauses()  # after a few services were asked about what they accepted


def call_agent(agent: str) -> None:
    """Serve an agent's queue: perform requests until there are none."""
    runtime(agent).serve()
    _alert_about_forged(agent)


_alerted: Pauses[str] = Pauses()


def _alert_about_forged(queue: str) -> None:
    """Open an alert about refused messages, once in a while: their number must not cost anything."""
    if not _alerted.of(queue) and (refused := signing.refused(queue)):
        _alerted.begin(queue, conf.FORGED_ALERT_EVERY_S)
        capture.keep_forged(queue, refused)


def _alert_about_blocked(blocked: Blocked) -> None:
    """Open an alert about code that blocks an event loop, or count it again; in a thread of its own."""
    cause = f"{alerts.BLOCKED_LOOP}{blocked.agent}/{blocked.action}"
    if _alerted.of(cause):
        return
    _alerted.begin(cause, conf.LOOP_ALERT_EVERY_S)
    code = f"{blocked.agent}.{blocked.action}" if blocked.action else f"the agent {blocked.agent}"
    try:
        alerts.raise_alert(
            cause,
            severity=Severity.WARNING,
            title=f"The event loop of a worker is blocked by {code}",
            detail=f"Its other calls wait meanwhile, and may run out of time. Last: {blocked}",
        )
    except Error as error:  # it is in the log
        logger.warning("cannot open the alert %s: %s", cause, sql.first_line(error))
    finally:
        connection.close()


def deliver_status(application: str) -> None:
    """Serve an application's status queue: deliver its status messages."""
    for _ in (turns := Turns(queues.STATUS_PREFIX + application)):
        size = conf.BATCH_SIZE
        while turns.may_go_on() and status_messages.deliver(application, size) >= size:
            pass


def send_notifications() -> None:
    """Serve the alerts' queue: send notifications."""
    for _ in (turns := Turns(queues.ALERTS, bounded=False)):
        size = conf.NOTIFICATION_BATCH_SIZE
        while turns.may_go_on() and notifications.send_due() == size:
            pass


def push_status() -> None:
    """Serve the push queue: send status messages to applications with a webhook."""
    for _ in (turns := Turns(queues.PUSH)):
        # each message that is accepted releases the next one of its task
        while turns.may_go_on() and push.send_due():
            pass


class Turns:
    """The messages for each turn of a job, until its queue's inbox has been empty for a while.

    Turns have a minimum interval, in seconds, so that messages gather into batches: a turn for each would
    cost many times as much. The schedulers have none: agents gather replies, those that arrive during a
    turn are the next one's batch, and a task waits for each of its turns. The doorbell is cleared before
    the last look. A turn may set `again_in`, the seconds after which another must follow, with or without
    messages; the supervisor rings if that is far off. A turn that is not `bounded` waits for what may take
    any time, such as mail servers or a scan of the whole database.
    """

    def __init__(
        self, queue: str, interval: float = conf.TURN_INTERVAL_S, *, bounded: bool = True
    ) -> None:
        if not bounded:
            _unbounded.add(queue)
        self.queue = queue
        self.interval = interval
        self.again_in: float | None = None

    def __iter__(self) -> Iterator[Sequence[bytes]]:
        messages: Sequence[bytes] = [queues.LOOK]
        leaving = False
        while messages or not leaving:
            leaving = not messages
            if leaving:
                queues.clear_doorbell(self.queue)
            else:
                started = time.monotonic()
                self.again_in = None
                yield messages
                _stopping.wait(max(0.0, started + self.interval - time.monotonic()))
            if _stopping.is_set():  # another worker takes the rest
                queues.clear_doorbell(self.queue)
                queues.try_to_ring(self.queue)
                return
            again_in = self.again_in
            soon = again_in is not None and again_in < conf.INBOX_IDLE_S and not leaving
            wait = max(again_in or 0.0, conf.TURN_INTERVAL_S) if soon else conf.INBOX_IDLE_S
            messages = queues.take(self.queue, conf.BATCH_SIZE, 0 if leaving else wait)
            note_alive(self.queue)
            if soon and not messages:
                messages = [queues.LOOK]

    def may_go_on(self) -> bool:
        """Return whether a turn may go on with more; note that its thread does not stand still."""
        note_alive(self.queue)
        return not _stopping.is_set()


def stop() -> None:
    """Have the loops of this process finish their current work, take no more, and end."""
    _stopping.set()
    for running in list(_runtimes.values()):  # a copy: other threads may add to it
        running.stop()


def stopping() -> bool:
    """Return whether this process was asked to stop."""
    return _stopping.is_set()


_stopping = threading.Event()
_runtimes: dict[str, Runtime] = {}


def runtime(agent: str) -> Runtime:
    """Return this process's runtime of an agent, with its event loop and connections."""
    if agent not in _runtimes:
        kind = registry.get(registry.agents, "agent", agent)
        _runtimes[agent] = Runtime(kind(instance.name(agent)), _alert_about_blocked)
        if _stopping.is_set():
            _runtimes[agent].stop()
    return _runtimes[agent]


_unbounded: set[str] = set()  # queues whose turns may last for any time
_seen_alive: dict[str, float] = {}  # queue → when its thread last went on (monotonic)


def note_alive(queue: str) -> None:
    """Note that the thread of a queue goes on; only that thread calls this."""
    _seen_alive[queue] = time.monotonic()


def alive(queue: str) -> bool:
    """Return whether the thread of a queue goes on; the heartbeat's thread must not hide that it hangs."""
    seen, served = _seen_alive.get(queue), _runtimes.get(queue)
    if seen is None or queue in _unbounded:
        return True
    beat = served.watch.beat_at if served else 0.0
    return time.monotonic() - max(seen, beat) < conf.STALLED_AFTER_S


def stepped_back(queue: str) -> float | None:
    """Return when this process's instance of an agent stepped back; None if it takes part."""
    served = _runtimes.get(queue)
    return served.siblings.part.back_since if served else None


def rest(queue: str) -> None:
    """Release resources that an idle queue does not need."""
    if served := _runtimes.get(queue):
        served.rest()


def close_runtimes() -> None:
    """Close the connections and loops of this process's agents."""
    while _runtimes:
        _runtimes.popitem()[1].close()
