"""`manage.py archive`: writes old tasks to files and removes them, and puts them back."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from orchestration import registry
from orchestration.assurance.management.moments import moment
from orchestration.assurance.retention import archive
from orchestration.assurance.retention.archive import Exists
from orchestration.assurance.retention.folder import Damaged


class Command(BaseCommand):
    """Moves tasks between the database and a folder."""

    help = (
        "Write ended tasks with all their rows to compressed files with checksums, then remove them "
        "from the database; or put them back with --restore. It can be repeated after an interruption."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "--before", type=moment, metavar="DATE", help="tasks that ended before, as 2026-01-31"
        )
        which.add_argument(
            "--due", action="store_true", help="tasks that the retention policies no longer keep"
        )
        which.add_argument(
            "--restore", action="store_true", help="put all tasks of the folder back"
        )
        parser.add_argument("--workflow", help="only tasks of this workflow")
        parser.add_argument("folder", nargs="?", help="by default ARCHIVE_DIR")

    def handle(self, *_: Any, **options: Any) -> None:
        """Write, or put back, and print each file."""
        if not (path := options["folder"] or settings.ARCHIVE_DIR):
            raise CommandError("Name a folder, or set ARCHIVE_DIR.", returncode=2)
        workflow = options["workflow"]
        if workflow and workflow not in registry.workflows:
            raise CommandError(
                f"there is no workflow {workflow!r}{registry.suggest(workflow, registry.workflows)}",
                returncode=2,
            )
        try:
            if options["restore"]:
                total = archive.restore(Path(path), self.stderr.write)
                self.stdout.write(f"{total:,} tasks were put back")
                return
            workflows = [workflow] if workflow else sorted(registry.workflows)
            total = archive.archive(Path(path), options["before"], workflows, self.stderr.write)
        except (Damaged, Exists, OSError) as error:
            raise CommandError(str(error), returncode=1) from error
        self.stdout.write(f"{total:,} tasks were written to {path} and removed")
