"""`manage.py work QUEUE`: one worker process for one queue."""

from argparse import ArgumentParser
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from orchestration import checks, instance, registry, workers


class Command(BaseCommand):
    """Serves one queue until it is told to stop."""

    requires_system_checks = [checks.TAG]
    help = "Serve one queue: submission, scheduler, an agent's, or status.<application>."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the queue's name."""
        parser.add_argument("queue", help="a name in RQ_QUEUES")

    def handle(self, *_: Any, **options: Any) -> None:
        """Run the worker."""
        name = options["queue"]
        if name not in settings.RQ_QUEUES:
            near = registry.suggest(name, settings.RQ_QUEUES)
            raise CommandError(f"there is no queue {name!r}{near}")
        with suppress(SystemExit):  # by SIGTERM
            workers.run(name)
        instance.end()
