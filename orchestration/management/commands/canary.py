"""`manage.py canary`: sends a task through all parts, and prints how long it took."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestration.monitoring import canary

LOOK = 0.05  # seconds between two looks


class Command(BaseCommand):
    """Fails with the name of the part that is missing, or that the task waits for."""

    help = (
        "Send a task through all parts, after a deploy for example; no service is called. "
        "Examples: `manage.py canary`; `manage.py canary --seconds 5`."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the timeout."""
        parser.add_argument("--seconds", type=float, default=30.0, help="at most (default: 30)")

    def handle(self, *_: Any, seconds: float, **__: Any) -> None:
        """Send the task, and wait for its end."""
        if missing := canary.unserved():
            raise CommandError(f"no worker serves {', '.join(sorted(missing))}")
        if missing_leaders := canary.missing_leaders():
            raise CommandError(f"no {' and no '.join(missing_leaders)} leads")
        if closed := canary.closed():
            raise CommandError(f"it would wait, because of {', '.join(closed)}")
        began = time.monotonic()
        reference = canary.send()
        while waits_for := canary.waits_for(reference):
            if time.monotonic() > began + seconds:
                raise CommandError(f"after {seconds:g} s it waits for {', '.join(waits_for)}")
            time.sleep(LOOK)
        took = time.monotonic() - began
        self.stdout.write(f"A task went through all parts in {took:.2f} s.")
