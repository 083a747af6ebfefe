"""`manage.py doctor`: says what is wrong with a configuration, and what to do about it."""

import json
import time
from argparse import ArgumentParser
from typing import Any

from django.core.checks import INFO, WARNING, CheckMessage
from django.core.management.base import BaseCommand
from django.utils.module_loading import autodiscover_modules

from orchestration.assurance.doctor import (  # noqa: F401 - imported, they count
    database,
    processes,
    redis,
    roles,
    subjects,
)

# whose silence leaves most of the others' questions open
ESSENTIAL = {f"{module.subject.name}.{subjects.UNREACHABLE}" for module in (database, redis)}


class Command(BaseCommand):
    """Examines the engine's subjects and those of each application's module `doctor`. Changes nothing."""

    requires_system_checks = []  # they are among what it reports

    help = (
        "Check the configuration: database and its roles, Redis, processes, settings, partners. "
        "Exits with 0 if there are notes at most, 1 if there are warnings or errors, 2 if the database or "
        "Redis could not be asked. Examples: `manage.py doctor`; `manage.py doctor --json`."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="print the findings as JSON")
        parser.add_argument(
            "--seconds", type=float, default=10.0, help="wait this long at most (default: 10)"
        )

    def handle(self, *_: Any, seconds: float, **options: Any) -> None:
        """Examine everything at once, and print what was found, the worst first."""
        autodiscover_modules("doctor")
        began = time.monotonic()
        messages = [message for message in subjects.examine(seconds) if not message.is_silenced()]
        took = time.monotonic() - began
        if options["json"]:
            self._print_json(messages, took)
        else:
            self._print(messages, took)
        if ESSENTIAL & {message.id for message in messages}:
            raise SystemExit(2)
        if any(message.level >= WARNING for message in messages):
            raise SystemExit(1)

    def _print_json(self, messages: list[CheckMessage], took: float) -> None:
        findings = [
            {
                "id": message.id,
                "level": _level(message),
                "problem": str(message.msg),
                "remedy": message.hint or "",
            }
            for message in messages
        ]
        result = {"seconds": round(took, 2), "findings": findings}
        self.stdout.write(json.dumps(result, indent=2, ensure_ascii=False))

    def _print(self, messages: list[CheckMessage], took: float) -> None:
        for message in messages:
            self.stdout.write(f"{_level(message):<8}{message.id}: {message.msg}")
            if message.hint:
                self.stdout.write(f"        remedy: {message.hint}")
        levels = [_level(message) for message in messages]
        counts = ", ".join(f"{levels.count(name)} {name}s" for name in ("error", "warning", "note"))
        self.stdout.write(f"Looked for {took:.1f} s: {counts}")


def _level(message: CheckMessage) -> str:
    if message.level <= INFO:
        return "note"
    return "warning" if message.level == WARNING else "error"
