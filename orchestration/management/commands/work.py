"""`manage.py work QUEUE …`: one process, with a worker for each of its queues."""

from argparse import ArgumentParser
from contextlib import suppress
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestration import checks, registry
from orchestration.cluster import instance
from orchestration.database import migrated
from orchestration.messaging import queue_names
from orchestration.workers import worker


class Command(BaseCommand):
    """Serves queues until SIGTERM or SIGINT."""

    requires_system_checks = [checks.TAG]
    help = "Serve queues: submission, scheduler, an agent's, status.<application>, …, or all."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the names of the queues."""
        parser.add_argument("queues", nargs="*", metavar="QUEUE", help="such as scheduler")
        parser.add_argument("--all", action="store_true", help="serve every queue of the engine")
        parser.add_argument(
            "--but",
            nargs="+",
            default=[],
            metavar="QUEUE",
            help="with --all: leave these to others; a new agent's queue is served all the same",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Run the workers."""
        names = _chosen(options["queues"], everything=options["all"], but=options["but"])
        migrated.require()
        try:
            with suppress(SystemExit):  # by SIGTERM
                worker.run(names)
        except worker.ThreadEnded as error:
            self.stderr.write(f"{error}")
            instance.end(1)
        instance.end()


def _chosen(names: list[str], *, everything: bool, but: list[str]) -> list[str]:
    """Return the queues to serve, each once."""
    known = queue_names.declared()
    if everything == bool(names):
        raise CommandError("name the queues to serve, or give --all and no name")
    if but and not everything:
        raise CommandError("--but leaves queues out of --all: give that as well")
    for name in (*names, *but):
        if name not in known:
            raise CommandError(f"there is no queue {name!r}{registry.suggest(name, known)}")
    served = [name for name in known if name not in but] if everything else names
    if not served:
        raise CommandError("--but leaves no queue to serve")
    return list(dict.fromkeys(served))
