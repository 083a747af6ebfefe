"""A worker in the test's own process."""

from orchestration.messaging import queues
from orchestration.workers import jobs, worker


def serve(name):
    """Run the worker of a queue until it is empty."""
    connection = queues.worker_connection()
    try:
        worker.QueueWorker(queues.queue(name, connection)).serve(burst=True)
    finally:
        connection.close()
        jobs.close_runtimes()
