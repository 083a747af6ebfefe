"""The RQ workers: one for each queue that a process serves, each in a thread of its own, without forks."""

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

from . import conf, instance, jobs, queues, sql
from .lookout import Lookout
from .presence import Presence

logger = logging.getLogger(__name__)
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Worker(SimpleWorker):
    """Runs the doorbell job of its queue, in process, and refuses every other job.

    It keeps none of RQ's books: no registries, results or retries, nor of itself: `Presence` reports
    it. The state store knows what is to be done, and the supervisor rings for it again; a job that is
    lost or fails leaves nothing to recover. So of Redis it needs the next job alone, and waits for a
    Redis that is away.

    It holds the lock `at_hand` while it runs a job. Once another thread has that lock, the worker
    begins nothing more.
    """

    def __init__(self, queue: Queue) -> None:
        super().__init__(
            [queue],
            name=instance.name(queue.name),
            connection=queue.connection,
            serializer=JSONSerializer,
            worker_ttl=conf.WORKER_TTL,
            log_job_description=False,
            prepare_for_work=False,
        )
        self.served = queue.name
        self.answer = queues.answer_to(queue.name)
        self.at_hand = Lock()

    def serve(self, *, burst: bool = False) -> None:
        """Answer doorbells until the process is to stop; with `burst`, until the queue is empty."""
        while not jobs.stopping():
            try:
                found = self._next(None if burst else self.dequeue_timeout)
            except DequeueTimeout:
                jobs.rest(self.served)
            except RedisError as error:
                logger.warning("queue %s: Redis is away: %s", self.served, error)
                time.sleep(conf.REDIS_AWAY)
            except Exception:  # whatever lay on the queue, it is off it now
                logger.exception("queue %s: a malformed job was refused", self.served)
            else:
                if found is None or not self._take(*found):
                    break

    def _take(self, job: Job, queue: Queue) -> bool:
        """Run a job, unless the process stops: then another worker is called. Return whether it ran."""
        if not self.at_hand.acquire(blocking=False):
            with suppress(RedisError):  # the supervisor rings again
                queues.call_worker(self.served)
            return False
        try:
            self.execute_job(job, queue)
        finally:
            self.at_hand.release()
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
        """Run the queue's doorbell job; drop the job in any case."""
        try:
            self._check(job)
            close_old_connections()
            job.perform()
        except Refused as error:
            logger.error("job %s on queue %s was refused: %s", job.id, queue.name, error)
        except Exception as error:  # a doorbell never kills its worker: the work is still there
            if sql.is_unavailable(error):
                connection.close()  # a server that takes no writes would be asked again and again
            if sql.is_unavailable(error) or isinstance(error, queues.Unreachable):
                logger.error("queue %s must wait: %s", queue.name, str(error).strip())
            else:
                logger.exception("queue %s: the doorbell's work failed", queue.name)
        finally:
            close_old_connections()
            with suppress(RedisError):  # they expire
                pipeline = self.connection.pipeline()
                pipeline.delete(queue.intermediate_queue_key)  # RQ's safety net, which nobody reads
                pipeline.delete(job.key)
                pipeline.execute()

    def _check(self, job: Job) -> None:
        """Raise `Refused` unless the job is exactly this queue's doorbell."""
        try:
            asked = (job.func_name, tuple(job.args), job.kwargs or {})
        except (DeserializationError, ValueError, TypeError, AttributeError) as error:
            raise Refused(f"it cannot be read: {error}") from error
        if asked != (*self.answer, {}):
            raise Refused(f"only {self.answer[0]} runs here, not {job.func_name}")


class Refused(Exception):
    """A job that is not this queue's doorbell."""


class Ended(Exception):
    """A queue's thread has ended by itself: the process must end, and be started again."""


def run(names: Sequence[str]) -> None:
    """Serve queues until SIGTERM or SIGINT, then finish what is at hand; raises `Ended`.

    Each has a worker in a thread of its own, with its own connections and event loop, so that none
    waits for another's work.
    """
    _on_signals(lambda *_: sys.exit(0))
    presence = Presence(*names, stepped_back=jobs.stepped_back)
    with presence, Lookout() if queues.ALERTS in names else nullcontext():
        over: SimpleQueue[str] = SimpleQueue()  # the queue whose thread ended, or "" for a signal
        _on_signals(lambda *_: over.put(""))
        served = [Worker(queues.queue(name, queues.worker_connection())) for name in names]
        for worker in served:
            Thread(target=_serve, args=(worker, over), name=worker.served, daemon=True).start()
        ended = over.get()
        jobs.stop()
        for worker in served:  # those that wait for a doorbell end with the process
            worker.at_hand.acquire()
        jobs.close_runtimes()
    if ended:
        raise Ended(f"the thread that served the queue {ended} has ended")


def _on_signals(handler: Callable[[int, FrameType | None], object]) -> None:
    for number in SIGNALS:
        signal.signal(number, handler)


def _serve(worker: Worker, over: "SimpleQueue[str]") -> None:
    try:
        worker.serve()
    except BaseException:  # the process ends by it
        logger.critical("queue %s: its thread fails", worker.served, exc_info=True)
    finally:
        over.put(worker.served)
        connection.close()
