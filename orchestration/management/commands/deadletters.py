"""`manage.py deadletters`: submissions and messages that failed or were set aside, from a shell."""

import getpass
import json
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestration import registry
from orchestration.database.capped_counts import CAP
from orchestration.database.lane import State
from orchestration.dead_letters import actions
from orchestration.dead_letters import listing as dead_letters
from orchestration.dead_letters.actions import DeadLetterFilter, Kind

DETAILS = """
states:
  waiting   it failed and is tried again by itself
  unknown   no release that runs knows its workflow; it is tried again by itself
  refused   it was refused or given up, and waits for a person
  closed    a person decided that it is not processed; listed only if asked for

examples:
  manage.py deadletters list
  manage.py deadletters list --kind submission --name greet --state refused --limit 500
  manage.py deadletters list --state closed
  manage.py deadletters retry 12 --kind submission --reason "the guest is known now"
  manage.py deadletters retry --name greet --reason "the release is mended"
  manage.py deadletters retry --all
  manage.py deadletters close 12 --kind submission --reason "they ordered by phone"
  manage.py deadletters retry 12 --kind submission --state closed --reason "they want it after all"
"""


class Command(BaseCommand):
    """Lists, retries and closes dead letters."""

    help = "See submissions and messages that failed or were set aside; retry or close them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the actions and their options."""
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.epilog = DETAILS
        acts = parser.add_subparsers(dest="act", required=True)
        listed = acts.add_parser("list", help="the newest, all but closed ones")
        again = acts.add_parser("retry", help="have them tried again now")
        closed = acts.add_parser("close", help="decide that they are not processed")
        for act in (listed, again, closed):
            act.add_argument("--kind", choices=Kind.values, default="")
            act.add_argument("--name", default="", help="a workflow, an application, or a queue")
            act.add_argument("--state", choices=State.values, default="")
        listed.add_argument("--limit", type=int, default=50, help="how many")
        for act in (again, closed):
            act.add_argument("id", type=int, nargs="?", help="as `list` gives it; with --kind")
            act.add_argument("--all", action="store_true", help="of every kind")
            act.add_argument("--actor", default=getpass.getuser(), help="who you are")
            act.add_argument(
                "--reason", required=act is closed, default="", help="kept in the history"
            )

    def handle(self, *_: Any, act: str, **options: Any) -> None:
        """Run the action, and print its result as JSON."""
        filters = DeadLetterFilter(
            **{name: options[name] for name in ("kind", "name", "state")}, id=options.get("id")
        )
        result = getattr(self, f"_{act}")(filters, **options)
        self.stdout.write(json.dumps(result, indent=2, default=str))

    def _list(self, filters: DeadLetterFilter, *, limit: int, **_: Any) -> Any:
        page = dead_letters.letters(filters, personal=True, limit=limit)
        if page.total > len(page.rows):
            more = "more than " if page.total > CAP else ""
            count = min(page.total, CAP)
            self.stderr.write(f"the newest {len(page.rows)} of {more}{count}; see --limit")
        return [asdict(row) for row in page.rows]

    def _retry(self, filters: DeadLetterFilter, *, actor: str, reason: str, **options: Any) -> Any:
        self._check(filters, everything=options["all"])
        return {"retried": self._counted(actions.retry(filters, by=actor, reason=reason), filters)}

    def _close(self, filters: DeadLetterFilter, *, actor: str, reason: str, **options: Any) -> Any:
        self._check(filters, everything=options["all"])
        return {"closed": self._counted(actions.close(filters, by=actor, reason=reason), filters)}

    def _check(self, filters: DeadLetterFilter, *, everything: bool) -> None:
        if filters.id is not None and not filters.kind:
            raise CommandError("give its --kind: each kind has its own numbers")
        narrowed = filters.id is not None or filters.kind or filters.name or filters.state
        if bool(narrowed) == everything:
            raise CommandError("say which: an id, --kind, --name or --state; or --all")

    def _counted(self, count: int, filters: DeadLetterFilter) -> int:
        if count:
            return count
        if filters.id is not None:
            raise CommandError(
                f"{filters.kind} {filters.id} is not a dead letter, or another one has its reference"
                " (a closed one is retried with --state closed)",
                returncode=1,
            )
        known = [*registry.workflows, *registry.receivers]
        hint = (
            registry.suggest(filters.name, known)
            if filters.name and filters.name not in known
            else ""
        )
        raise CommandError(f"unknown dead letter{hint}", returncode=1)
