"""The job that the audit's doorbell runs."""

from django.db import connection

from ...workers.jobs import Turns
from ..apps import QUEUE
from . import runner


def run() -> None:
    """Serve the audit's queue: run the audit if it is due."""
    for _ in Turns(QUEUE, bounded=False):
        runner.run(runner.HOURLY)
        connection.close()  # the next is an hour away
