"""`manage.py demo_orders`: place orders that end in every state."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import URLError

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from orders.demo import scenarios
from orders.demo.shoppers import NothingToSell
from orders.models import Placement


class Command(BaseCommand):
    """Plays the demo's scenarios on a running stack with the sandbox."""

    help = (
        "Place orders that end in every state, by faults at the sandbox for these orders only. "
        "Examples: `manage.py demo_orders`; only if there are none: `manage.py demo_orders --first`."
    )

    def add_arguments(self, parser: Any) -> None:
        """Add `--first`."""
        parser.add_argument(
            "--first", action="store_true", help="do nothing if orders were ever placed"
        )

    def handle(self, *_args: Any, first: bool, **_options: Any) -> None:
        """Play the scenarios."""
        if first and Placement.objects.exists():
            return
        try:
            with _ended_in_order():
                count = scenarios.play(self.stderr.write)
        except NothingToSell as problem:
            raise CommandError(str(problem)) from problem
        except (URLError, OSError) as problem:
            raise CommandError(
                f"the sandbox at {settings.SANDBOX_URL} does not answer ({problem}): start it, "
                "by `make run` say, and try again"
            ) from problem
        self.stderr.write(f"{count} orders placed")


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Turn SIGTERM into an exception, so that no fault stays at the sandbox."""

    def end(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    former = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
