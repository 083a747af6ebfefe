"""`manage.py operations`: runs bulk operations: a dry run, the operation, and its result."""

import getpass
import json
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from orchestration.agents import payload_schemas
from orchestration.console import selection as dashboard_selection
from orchestration.console.queries import incidents
from orchestration.console.queries import operations as operations_queries
from orchestration.console.queries.operations import (
    OperationFilters,
    last_action_on_operation,
    operation_by_id,
)
from orchestration.models import Operation
from orchestration.models.operation import Act
from orchestration.operations import controls, lifecycle, summary
from orchestration.operations.items import preview_figures
from orchestration.people.person import Person

EXAMPLES = """
examples:
  manage.py operations start resubmit --query "state:error error:timeout" --dry-run
  manage.py operations start resubmit --incident 7 --sample 1 --reason "route mended" --wait
  manage.py operations start undo --task 0199… --task 0199… --rate 5 --reason "recalled"
  manage.py operations list
  manage.py operations show 12
  manage.py operations pause 12 --reason "they complain"
  manage.py operations abort 12

exit codes: 0 done, or ended with everything fixed; 1 refused, or ended with failures; 2 misuse
"""
LOOK = 1.0  # seconds between two looks while waiting


class Command(BaseCommand):
    """Starts, lists, shows, pauses, resumes and aborts bulk operations."""

    help = "Act on many tasks at once, at a rate, and follow each to its end."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what to do, to which, and why."""
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.epilog = EXAMPLES
        doing = parser.add_subparsers(dest="what", required=True)
        start = doing.add_parser("start", help="do something to a selection")
        start.add_argument("act", choices=Act.values)
        which = start.add_mutually_exclusive_group(required=True)
        which.add_argument("--query", help="as typed into the dashboard's search")
        which.add_argument("--incident", type=int, help="an incident's number")
        which.add_argument("--task", action="append", help="a task's id; any number of times")
        start.add_argument("--sample", type=int, help="only this number of them")
        start.add_argument("--rate", type=float, default=20.0, help="a second (20)")
        start.add_argument(
            "--force", action="store_true", help="undo the rest of what cannot be undone whole"
        )
        start.add_argument("--result", type=payload_schemas.parse, help="of by_hand, as JSON")
        start.add_argument(
            "--dry-run", action="store_true", help="show what it would do; change nothing"
        )
        start.add_argument("--wait", action="store_true", help="until every item has its end")
        listing = doing.add_parser("list", help="the newest operations")
        listing.add_argument("--open", action="store_true", help="only those that are not over")
        show = doing.add_parser("show", help="how one stands")
        acts = [
            doing.add_parser(name, help=words)
            for name, words in (
                ("pause", "send no more for now"),
                ("resume", "go on after a pause"),
                ("abort", "send nothing more; before it began: take it back whole"),
            )
        ]
        for subparser in (show, *acts):
            subparser.add_argument("operation", type=int)
        for subparser in (start, *acts):
            subparser.add_argument("--reason", default="", help="kept in the history")
            subparser.add_argument("--actor", default=getpass.getuser(), help="who you are")
        for subparser in (start, listing, show, *acts):
            subparser.add_argument("--json", action="store_true", help="answer in JSON")

    def handle(self, *_: Any, what: str, **options: Any) -> None:
        """Run the action, and print its result."""
        getattr(self, f"_{what}")(**options)

    def _start(self, act: str, *, dry_run: bool, wait: bool, **options: Any) -> None:
        selection = _selection(**options)
        try:
            chosen = dashboard_selection.meaning(selection)
        except dashboard_selection.Meaningless as problem:
            raise CommandError(str(problem), returncode=2) from problem
        if options["force"] and act != Act.UNDO:
            raise CommandError("only an undo can be forced", returncode=2)
        chosen = replace(chosen, forced=options["force"])
        if dry_run:
            self._say(preview_figures(Act(act), chosen), as_json=options["json"])
            return
        if not options["reason"]:
            raise CommandError("say why: --reason", returncode=2)
        if not 0 < options["rate"] <= 1000:
            raise CommandError("the rate must be more than 0 and at most 1000", returncode=2)
        if act == Act.BY_HAND and not isinstance(options["result"], dict):
            raise CommandError("say what it gave, as a JSON object: --result", returncode=2)
        actor = Person(name=options["actor"])
        draft = lifecycle.draft(
            Act(act), selection, chosen, actor=actor, incident=options["incident"]
        )
        arguments = {name: options[name] for name in ("reason", "rate", "sample")}
        terms = lifecycle.Terms(result=options["result"])
        refusal = lifecycle.confirm(draft.id, chosen, actor=actor, terms=terms, **arguments)
        if refusal:
            draft.delete()
            raise CommandError(refusal.value)
        self._stands(draft.id, as_json=options["json"], wait=wait)

    def _list(self, *, json: bool, **options: Any) -> None:
        filters = OperationFilters(state="open" if options["open"] else "")
        for row in operations_queries.operations(filters).rows:
            self._say(_as_dict(row), as_json=json)

    def _show(self, operation: int, *, json: bool, **_: Any) -> None:
        self._stands(operation, as_json=json)

    def _pause(self, **options: Any) -> None:
        self._done(controls.pause, **options)

    def _resume(self, **options: Any) -> None:
        self._done(controls.resume, **options)

    def _abort(self, **options: Any) -> None:
        self._done(controls.abort, **options)

    def _done(self, doing: Any, *, operation: int, actor: str, reason: str, **options: Any) -> None:
        refusal = doing(operation, actor=actor, reason=reason)
        if refusal:
            first = last_action_on_operation(operation)
            actor_note = f": {first.actor} {first.did}" if first else ""
            raise CommandError(refusal.value + actor_note)
        self._stands(operation, as_json=options["json"])

    def _stands(self, operation_id: int, *, as_json: bool, wait: bool = False) -> None:
        """Print the progress of an operation, with `wait` once it has ended; fail if an item failed."""
        row = operation_by_id(operation_id)
        if row is None:
            raise CommandError(f"unknown operation {operation_id}")
        while wait and row.ended_at is None:
            self.stderr.write(_line(row), ending="\n" if not sys.stderr.isatty() else "\r")
            time.sleep(LOOK)
            row = operation_by_id(operation_id) or row
        self._say(_as_dict(row), as_json=as_json)
        if row.again or row.other:
            sys.exit(1)

    def _say(self, result: dict[str, Any], *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(result, default=str))
            return
        for name, value in result.items():
            self.stdout.write(f"{name}: {value if isinstance(value, str) else json.dumps(value)}")


def _selection(
    *, query: str | None, incident: int | None, task: list[str] | None, **_: Any
) -> dict[str, Any]:
    if query is not None:
        return {"query": urlencode({"q": query})}
    if incident is not None:
        if incidents.incident_by_id(incident) is None:
            raise CommandError(f"there is no incident {incident}")
        return {"incident": incident}
    try:
        return {"tasks": [str(UUID(text)) for text in task or ()]}
    except ValueError as error:
        raise CommandError("a task's id is a UUID", returncode=2) from error


def _as_dict(row: Operation) -> dict[str, Any]:
    return {
        "operation": row.id,
        "act": row.act,
        "state": row.state,
        "summary": summary.sentence(row.act, row.counts, row.why),
        **row.counts,
        "actor": row.actor,
        "reason": row.reason,
        "approval": row.approval,
        "approved_by": row.approved_by,
    }


def _line(row: Operation) -> str:
    sentence = summary.sentence(row.act, row.counts, row.why)
    return f"operation {row.id}, {row.get_state_display().lower()}: {sentence}"
