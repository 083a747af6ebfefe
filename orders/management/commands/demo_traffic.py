"""`manage.py demo_traffic`: place random orders at a rate."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.error import URLError
from uuid import UUID

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import Error, connection

from orders.agents.partner_http import request_json
from orders.cards import Card
from orders.demo.shoppers import NothingToSell, Shoppers
from orders.lifecycle import changes
from orders.lifecycle.paying import CARD
from orders.lifecycle.queries import progress
from orders.lifecycle.tracking import fixes

FASTEST = 200.0  # orders per second
RETURN_SHARE = 0.6  # of customers who use another card after a decline
RETURN_AFTER = (5.0, 40.0)  # seconds
PAUSE = 2.0  # seconds to wait while the database is unavailable
REPORT_EVERY = 10.0  # seconds
POLL_EVERY = 2.0  # seconds
TIMEOUT = 3.0  # seconds for an answer of the sandbox
IDLE = 0.5  # seconds between polls for work


@dataclass
class Traffic:
    """Counts of orders, and the customers who will return, with times."""

    shoppers: Shoppers
    placed: int = 0
    repaid: int = 0
    returning: list[tuple[float, UUID]] = field(default_factory=list)

    def order(self, now: float) -> None:
        """Place an order; its customer may return."""
        chance = self.shoppers.chance
        order = self.shoppers.buy()
        self.placed += 1
        if chance.random() < RETURN_SHARE:
            self.returning.append((now + chance.uniform(*RETURN_AFTER), order))

    def come_back(self, now: float) -> None:
        """Pay with another card for the customers due to return whose card was declined."""
        due = [order for at, order in self.returning if at <= now]
        self.returning = [(at, order) for at, order in self.returning if at > now]
        for order in due:
            for fix in fixes(progress(order)):
                if fix.step == CARD:
                    changes.other_card(order, fix.attempt, Card.VISA)
                    self.repaid += 1


@dataclass
class Switch:
    """The traffic switch of the sandbox's page."""

    rate: float = 0.0
    polled_at: float = float("-inf")

    def target_rate(self, placed: int) -> float:
        """Return the switch's orders per second; 0 without a sandbox."""
        now = time.monotonic()
        if now - self.polled_at >= POLL_EVERY:
            self.polled_at = now
            self.rate = _ask(placed)
        return self.rate


def _ask(placed: int) -> float:
    try:
        answer = request_json(f"{settings.SANDBOX_URL}/demand", {"placed": placed}, timeout=TIMEOUT)
        return min(float(answer["rate"]), FASTEST)
    except (URLError, OSError, ValueError, LookupError, TypeError):
        return 0.0


class Command(BaseCommand):
    """Places orders until Ctrl-C, or `--count` of them."""

    help = (
        "Place realistic orders at a rate, until Ctrl-C. "
        "Examples: `manage.py demo_traffic --rate 2`; `manage.py demo_traffic --rate 20 --count 500`; "
        "as the switch on the sandbox's page says: `manage.py demo_traffic --switch`."
    )

    def add_arguments(self, parser: Any) -> None:
        """Add the options."""
        parser.add_argument(
            "--rate", type=float, default=1.0, help="orders per second on average (default: 1)"
        )
        parser.add_argument(
            "--switch", action="store_true", help="at the rate chosen on the sandbox's page"
        )
        parser.add_argument("--count", type=int, help="stop after this number of orders")
        parser.add_argument("--seed", type=int, help="random seed, for the same customers again")

    def handle(
        self,
        *_args: Any,
        rate: float,
        count: int | None,
        seed: int | None,
        switch: bool = False,
        **_options: Any,
    ) -> None:
        """Place orders as a Poisson process."""
        if not 0 < rate <= FASTEST:
            raise CommandError(f"--rate must be more than 0 and at most {FASTEST:g}, not {rate:g}")
        if count is not None and count < 1:
            raise CommandError(f"--count must be at least 1, not {count}")
        try:
            traffic = Traffic(Shoppers(chance=random.Random(seed)))  # noqa: S311 - no secret
        except NothingToSell as problem:
            raise CommandError(str(problem)) from problem
        started = time.monotonic()
        try:
            self._run(traffic, Switch().target_rate if switch else lambda _placed: rate, count)
        except KeyboardInterrupt:
            self.stderr.write("")
        took = time.monotonic() - started
        self.stderr.write(
            f"{traffic.placed} orders placed in {took:.0f} s, {traffic.repaid} paid with another card"
        )

    def _run(
        self, traffic: Traffic, target_rate: Callable[[int], float], count: int | None
    ) -> None:
        chance = traffic.shoppers.chance
        due = reported = time.monotonic()
        before = 0.0
        while count is None or traffic.placed < count:
            rate, now = target_rate(traffic.placed), time.monotonic()
            if rate != before:
                before, due = rate, now
            try:
                while rate and due <= now and (count is None or traffic.placed < count):
                    traffic.order(now)
                    due += chance.expovariate(rate)
                traffic.come_back(now)
            except Error as problem:
                self.stderr.write(f"the database is unavailable: {str(problem).strip()}")
                connection.close()
                time.sleep(PAUSE)
                due = time.monotonic()  # skip the orders missed meanwhile
            if rate and now - reported >= REPORT_EVERY:
                reported = now
                self.stderr.write(f"{traffic.placed} orders placed")
            soon = max(due - time.monotonic(), 0.001) if rate else IDLE
            time.sleep(min(soon, IDLE))
