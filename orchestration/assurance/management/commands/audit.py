"""`manage.py audit`: checks what the engine promises against the database and the partners' ledgers."""

import getpass
import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestration.assurance.audit import check, runner, snapshot
from orchestration.assurance.management.moments import moment


class Command(BaseCommand):
    """Names each task that breaks an invariant, its problem and the remedy. Changes nothing."""

    help = (
        "Check the invariants of all tasks, in one snapshot; safe while orders flow. "
        "Exits with 0 if all is well, 1 if something is violated, 2 if it could not be run."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        parser.add_argument(
            "--no-ledgers", action="store_true", help="do not compare with the partners' ledgers"
        )
        parser.add_argument(
            "--since",
            type=moment,
            metavar="TIME",
            help="only tasks that changed since then, as in 2026-01-31T08:00",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Run the audit and print what it found."""
        try:
            result = runner.run(
                _who(),
                ledgers=not options["no_ledgers"],
                since=options["since"],
                report=self.stderr.write,
            )
        except snapshot.Unreadable as error:
            raise CommandError(
                f"{error}\nIs the partner up? To leave the ledgers out: --no-ledgers", returncode=2
            ) from error
        if result is None:  # only of runs that come by themselves
            return
        if options["json"]:
            self.stdout.write(json.dumps(asdict(result), indent=2, ensure_ascii=False))
        else:
            self._print(result)
        if result.violations:
            raise SystemExit(1)

    def _print(self, result: runner.AuditResult) -> None:
        for violation in result.violations:
            name = check.INVARIANTS[violation.invariant]
            self.stdout.write(
                f"{violation.reference}: {violation.problem}\n"
                f"  breaks invariant {violation.invariant}: {name}\n  remedy: {violation.remedy}"
            )
        what = len(result.violations) or "no"
        self.stdout.write(f"{result.tasks:,} tasks in {result.seconds:.1f} s: {what} violations")


def _who() -> str:
    try:
        return f"manage.py audit ({getpass.getuser()})"[:150]
    except (KeyError, OSError):
        return "manage.py audit"
