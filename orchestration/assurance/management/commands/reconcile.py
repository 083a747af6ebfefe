"""`manage.py reconcile`: after a restore, settles what the services did since with what the tables say."""

import getpass
import json
from argparse import ArgumentParser
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestration.assurance import reconciliation
from orchestration.assurance.audit import snapshot
from orchestration.assurance.audit.restored import Findings
from orchestration.assurance.management.moments import moment
from orchestration.cluster import heartbeat

HELP = """
After the database was restored to an earlier moment: compare it with the services' own ledgers, and say
what they have done since. With --act, settle it: steps that were done since are repeated under the same
keys, tasks that were undone are undone, what was done for tasks that are lost is taken back.
Exits with 0 if nothing is left to be done, 1 if something is, 2 if it could not be run.
"""


class Command(BaseCommand):
    """Says what a restore has forgotten; settles it with --act. Run it while no worker runs."""

    help = HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--act", action="store_true", help="settle what is found")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        parser.add_argument(
            "--restored-to",
            type=moment,
            metavar="TIME",
            help="the moment of the backup or of recovery_target_time, as in 2026-01-31T08:00Z; "
            "by itself if the server was recovered since it started",
        )
        parser.add_argument(
            "--started", action="store_true", help="although workers have run since the restore"
        )
        parser.add_argument("--actor", default=getpass.getuser(), help="who you are")

    def handle(
        self,
        *_: Any,
        act: bool,
        restored_to: datetime | None,
        actor: str,
        **options: Any,
    ) -> None:
        """Print what is found; with `act`, settle it."""
        when = restored_to or reconciliation.restored_to()
        if when is None:
            raise CommandError(
                "This server does not say to which moment it was recovered: give --restored-to. "
                "Tasks from before that moment count as removed, not as lost.",
                returncode=2,
            )
        if running := sorted({worker.queue for worker in heartbeat.alive()} - {heartbeat.WEB}):
            raise CommandError(
                f"Workers run ({', '.join(running)}): stop every process first.", returncode=2
            )
        if not options["started"] and reconciliation.worked_since(when):
            raise CommandError(
                f"Workers have recorded attempts after {when}: that is not the moment of the restore. If it "
                "is, and they have run since then, give --started.",
                returncode=2,
            )
        try:
            findings = reconciliation.find(when, self.stderr.write)
            self._say(findings, when)
            done = reconciliation.Reconciled()
            if act:
                done = reconciliation.act(findings, when, self.stderr.write, actor=actor)
        except snapshot.Unreadable as error:
            raise CommandError(f"{error}\nIs the partner up?", returncode=2) from error
        if act:
            self._print(done)
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(findings, done), indent=2, default=str))
        if done.left or (findings and not act):
            raise SystemExit(1)

    def _print(self, done: reconciliation.Reconciled) -> None:
        self.stderr.write(
            f"Done: {done.adopted} submissions became tasks, {done.doubted} steps in doubt go on under "
            f"their keys, {done.undone} tasks are undone, {done.taken_back} effects were taken back."
        )
        for problem in done.left:
            self.stderr.write(f"Left: {problem}")

    def _say(self, findings: Findings, when: datetime) -> None:
        self.stderr.write(f"Since {when:%Y-%m-%d %H:%M:%S %Z}:")
        self.stderr.write(
            f"{len(findings.steps)} steps of {len(findings.tasks)} tasks were done, or may have been: they "
            "are repeated under the same keys"
        )
        self.stderr.write(f"{len(findings.undone)} tasks were undone: they are undone here")
        self.stderr.write(
            f"{len(findings.adoptable)} tasks are lost, and their submissions are here: they get their old "
            "ids"
        )
        self.stderr.write(
            f"{len(findings.gone)} tasks are lost: what was done for them is taken back where it can be"
        )
        self.stderr.write(
            f"{len(findings.children)} children are lost: their parents make them again, with the same keys"
        )
        for lost in findings.gone:
            steps = ", ".join(f"{effect.step} ({effect.agent})" for effect in lost.effects)
            self.stdout.write(f"{lost.reference or lost.id}: {steps or 'nothing stands'}")
        if findings.unlisted:
            self.stderr.write(
                f"Without a ledger: {', '.join(findings.unlisted)}. Every open step there counts as in "
                "doubt; look there for what was done for lost tasks."
            )


def _as_json(findings: Findings, done: reconciliation.Reconciled) -> dict[str, Any]:
    return {
        "steps": len(findings.steps),
        "undone": list(findings.undone),
        "adoptable": [asdict(task) for task in findings.adoptable],
        "children": [asdict(task) for task in findings.children],
        "lost": [asdict(task) for task in findings.gone],
        "unlisted": list(findings.unlisted),
        "left": done.left,
    }
