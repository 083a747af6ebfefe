"""The RQ worker of every queue: one process, one queue, no fork (three times as fast)."""

import logging
import signal
import sys
import time
from contextlib import nullcontext, suppress

from django.db import close_old_connections, connection
from redis.exceptions import RedisError
from rq import Queue, SimpleWorker
from rq.exceptions import DequeueTimeout, DeserializationError, StopRequested
from rq.job import Job
from rq.serializers import JSONSerializer

from . import conf, instance, jobs, queues, sql
from .lookout import Lookout
from .presence import Presence

logger = logging.getLogger(__name__)


class Worker(SimpleWorker):
    """Runs the doorbell job of its queue, in process, and refuses every other job.

    It keeps none of RQ's books: no registries, results or retries, nor of itself: `Presence` reports
    it. The state store knows what is to be done, and the supervisor rings for it again; a job that is
    lost or fails leaves nothing to recover. So of Redis it needs the next job alone, and waits for a
    Redis that is away.
    """

    def __init__(self, queue: Queue) -> None:
        super().__init__(
            [queue],
            name=instance.name(),
            connection=queue.connection,
            serializer=JSONSerializer,
            worker_ttl=conf.WORKER_TTL,
            log_job_description=False,
            prepare_for_work=False,
        )
        self.answer = queues.answer_to(queue.name)
        self._answering = False

    def serve(self, *, burst: bool = False) -> None:
        """Answer doorbells until asked to stop; with `burst`, until the queue is empty."""
        self._install_signal_handlers()  # type: ignore[no-untyped-call]
        with suppress(StopRequested):
            while not self._stop_requested:
                try:
                    found = self._next(None if burst else self.dequeue_timeout)
                except StopRequested:
                    break
                except DequeueTimeout:
                    jobs.rest()
                except RedisError as error:
                    logger.warning("queue %s: Redis is away: %s", self.queues[0].name, error)
                    time.sleep(conf.REDIS_AWAY)
                except Exception:  # whatever lay on the queue, it is off it now
                    logger.exception("queue %s: a malformed job was refused", self.queues[0].name)
                else:
                    if found is None:
                        break
                    self.execute_job(*found)

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
        self._answering = True
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
            self._answering = False
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

    def handle_warm_shutdown_request(self) -> None:
        """Have the job at hand take no more messages; calls under way come to their end."""
        jobs.stop()

    def _shutdown(self) -> None:
        """Stop after the job at hand, or at once when there is none (RQ asks Redis which it is)."""
        if not self._answering:
            raise StopRequested
        self._stop_requested = True


class Refused(Exception):
    """A job that is not this queue's doorbell."""


def run(name: str) -> None:
    """Serve queue `name` until SIGTERM or SIGINT."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    instance.become(name)
    redis = queues.worker_connection()
    with Presence(name), Lookout() if name == queues.ALERTS else nullcontext():
        try:
            Worker(queues.queue(name, redis)).serve()
        finally:
            jobs.close_runtimes()
