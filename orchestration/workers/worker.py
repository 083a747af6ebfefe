"""RQ workers: one for each queue of a process, each in its own thread, without forks."""

import gc
import logging
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from queue import SimpleQueue
from threading import Lock, Thread
from types import FrameType

from django.db import close_old_connections, connection
from redis.exceptions import RedisError
from rq import Queue, SimpleWorker
from rq.exceptions import DequeueTimeout, DeserializationError
from rq.job import Job
from rq.serializers import JSONSerializer

from .. import conf
from ..cluster import instance
from ..cluster.heartbeat import Heartbeat
from ..database import sql
from ..messaging import queues, redis_breaker
from ..tracing import switch
from . import jobs
from .leader_monitor import LeaderMonitor

logger = logging.getLogger(__name__)
GC_THRESHOLDS = 50_000, 20, 100  # objects; collections of the next younger generation
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class QueueWorker(SimpleWorker):
    """Runs the doorbell job of its queue, in process, and refuses every other job.

    It does not use RQ's registries, results, retries or worker records; `Heartbeat` reports it instead.
    The state store knows which work is due, and the supervisor rings again; a lost or failed job leaves
    nothing to recover. So it needs only the next job from Redis, and waits while Redis is away.

    It holds the lock `busy` while it runs a job. Once another thread has that lock, the worker starts
    no other job.
    """

    def __init__(self, queue: Queue) -> None:
        super().__init__(
            [queue],
            name=instance.name(queue.name),
            connection=queue.connection,
            serializer=JSONSerializer,
            worker_ttl=conf.WORKER_TTL_S,
            log_job_description=False,
            prepare_for_work=False,
        )
        self.served = queue.name
        self.handler = queues.handler_of(queue.name)
        self.busy = Lock()

    def serve(self, *, burst: bool = False) -> None:
        """Answer doorbells until the process stops; with `burst`, until the queue is empty."""
        while not jobs.stopping():
            jobs.note_alive(self.served)
            try:
                dequeued = self._next(None if burst else self.dequeue_timeout)
            except DequeueTimeout:
                jobs.rest(self.served)
            except RedisError as error:
                logger.warning("queue %s: Redis is away: %s", self.served, error)
                time.sleep(conf.REDIS_RECONNECT_S)
                self._ring_anew()
            except Exception:  # any error: the job has left the queue already
                logger.exception("queue %s: a malformed job was refused", self.served)
            else:
                if dequeued is None or not self._take(*dequeued):
                    break

    def _ring_anew(self) -> None:
        """Call a worker: Redis may have handed over a doorbell to the connection that broke."""
        with suppress(redis_breaker.Unreachable):  # tried again as long as Redis is away
            queues.clear_doorbell(self.served)
            queues.ring(self.served)

    def _take(self, job: Job, queue: Queue) -> bool:
        """Run a job; if the process stops, call another worker instead. Return whether it ran."""
        if not self.busy.acquire(blocking=False):
            with suppress(RedisError):  # the supervisor rings again
                queues.call_worker(self.served)
            return False
        try:
            self.execute_job(job, queue)
        finally:
            self.busy.release()
        return True

    def _next(self, timeout: int | None) -> tuple[Job, Queue] | None:
        """Wait for the next job; without a `timeout` (seconds), return None if there is none."""
        return self.queue_class.dequeue_any(
            self.queues,
            timeout,
            connection=self.connection,
            job_class=self.job_class,
            serializer=self.serializer,
        )

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Run the queue's doorbell job, and delete the job even if it fails."""
        done_with = [queue.intermediate_queue_key, job.key]  # the first is RQ's; never read here
        try:
            self._check(job)
            close_old_connections()
            job.perform()
        except JobRefused as error:
            logger.error("job %s on queue %s was refused: %s", job.id, queue.name, error)
        except Exception as error:  # noqa: BLE001 - a job never ends its worker: its work is still stored
            unreachable = isinstance(error, redis_breaker.Unreachable)
            if unreachable:
                # The next ring is to call a worker at once: a connection may have broken, no more.
                done_with.append(queues.flag(queue.name))
            if sql.log_end(logger, f"queue {queue.name}", error, brief=unreachable):
                connection.close()  # else a read-only server would be used again
        finally:
            close_old_connections()
            with suppress(RedisError):  # they expire
                pipeline = self.connection.pipeline()
                for key in done_with:
                    pipeline.delete(key)
                pipeline.execute()

    def _check(self, job: Job) -> None:
        """Raise `JobRefused` unless the job is this queue's doorbell."""
        try:
            call = (job.func_name, tuple(job.args), job.kwargs or {})
        except (DeserializationError, ValueError, TypeError, AttributeError) as error:
            raise JobRefused(f"it cannot be read: {error}") from error
        if call != (*self.handler, {}):
            raise JobRefused(f"only {self.handler[0]} runs here, not {job.func_name}")


class JobRefused(Exception):
    """A job that is not this queue's doorbell."""


class ThreadEnded(Exception):
    """A queue's thread has ended unexpectedly: the process must end and be restarted."""


def run(names: Sequence[str]) -> None:
    """Serve queues until SIGTERM or SIGINT, then finish the current work; raises `ThreadEnded`.

    Each queue has a worker in its own thread, with its own connections and event loop, so that none waits
    for another's work.
    """
    _on_signals(lambda *_: sys.exit(0))
    switch.begin()
    # What is loaded stays: the collector would look at all of it for every few hundred objects that a
    # call makes, which took a sixth of an agent's time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    heartbeat = Heartbeat(*names, stepped_back=jobs.stepped_back, alive=jobs.alive)
    with heartbeat, LeaderMonitor() if queues.ALERTS in names else nullcontext():
        over: SimpleQueue[str] = SimpleQueue()  # the queue whose thread ended, or "" for a signal
        _on_signals(lambda *_: over.put(""))
        served = [QueueWorker(queues.queue(name, queues.worker_connection())) for name in names]
        for worker in served:
            Thread(target=_serve, args=(worker, over), name=worker.served, daemon=True).start()
        ended = over.get()
        jobs.stop()
        for worker in served:  # workers that wait for a doorbell end with the process
            worker.busy.acquire()
        jobs.close_runtimes()
    if ended:
        raise ThreadEnded(f"the thread that served the queue {ended} has ended")


def _on_signals(handler: Callable[[int, FrameType | None], object]) -> None:
    for number in SIGNALS:
        signal.signal(number, handler)


def _serve(worker: QueueWorker, over: "SimpleQueue[str]") -> None:
    try:
        worker.serve()
    except BaseException:  # the process ends because of it
        logger.critical("queue %s: its thread fails", worker.served, exc_info=True)
    finally:
        over.put(worker.served)
        connection.close()
