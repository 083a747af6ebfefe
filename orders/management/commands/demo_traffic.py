"""`manage.py demo_traffic`: customers who come and order, at a rate."""

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

from orders import mending
from orders.cards import Card
from orders.demo import NothingToSell, Shoppers
from orders.exchange import exchange
from orders.tracking import CARD, mends
from orders.watching import progress

FASTEST = 200.0  # orders per second
MENDS = 0.6  # share of customers who give another card after a decline
THINKS = (5.0, 40.0)  # seconds that they take for it
PAUSE = 2.0  # seconds to wait for a database that is away
TOLD_EVERY = 10.0  # seconds
ASKED_EVERY = 2.0  # seconds
PATIENCE = 3.0  # seconds that the sandbox may take to answer
IDLE = 0.5  # seconds between two looks whether there is anything to do


@dataclass
class Traffic:
    """What has been placed, and who will come back to an order of theirs, and when."""

    shoppers: Shoppers
    placed: int = 0
    mended: int = 0
    returning: list[tuple[float, UUID]] = field(default_factory=list)

    def order(self, now: float) -> None:
        """Place one order; who pays with a bad card may come back."""
        chance = self.shoppers.chance
        order = self.shoppers.buy()
        self.placed += 1
        if chance.random() < MENDS:
            self.returning.append((now + chance.uniform(*THINKS), order))

    def come_back(self, now: float) -> None:
        """Have those whose time has come pay with another card, if theirs was declined."""
        due = [order for at, order in self.returning if at <= now]
        self.returning = [one for one in self.returning if one[0] > now]
        for order in due:
            for mend in mends(progress(order)):
                if mend.step == CARD:
                    mending.other_card(order, mend.attempt, Card.VISA)
                    self.mended += 1


@dataclass
class Switch:
    """The switch on the sandbox's page."""

    rate: float = 0.0
    asked_at: float = float("-inf")

    def wanted(self, placed: int) -> float:
        """Return the orders per second that are wanted: none where there is no sandbox to ask."""
        now = time.monotonic()
        if now - self.asked_at >= ASKED_EVERY:
            self.asked_at = now
            self.rate = _ask(placed)
        return self.rate


def _ask(placed: int) -> float:
    try:
        answer = exchange(f"{settings.SANDBOX_URL}/demand", {"placed": placed}, patience=PATIENCE)
        return min(float(answer["rate"]), FASTEST)
    except (URLError, OSError, ValueError, LookupError, TypeError):
        return 0.0


class Command(BaseCommand):
    """Places orders until Ctrl-C, or as many as asked for."""

    help = (
        "Place realistic orders at a rate, until Ctrl-C. "
        "Examples: `manage.py demo_traffic --rate 2`; `manage.py demo_traffic --rate 20 --count 500`; "
        "as the switch on the sandbox's page says: `manage.py demo_traffic --switch`."
    )

    def add_arguments(self, parser: Any) -> None:
        """Take the rate, and how many."""
        parser.add_argument(
            "--rate", type=float, default=1.0, help="orders per second on average (default: 1)"
        )
        parser.add_argument(
            "--switch", action="store_true", help="at the rate chosen on the sandbox's page"
        )
        parser.add_argument("--count", type=int, help="stop after so many orders")
        parser.add_argument("--seed", type=int, help="for the same customers again")

    def handle(
        self,
        *_args: Any,
        rate: float,
        count: int | None,
        seed: int | None,
        switch: bool = False,
        **_options: Any,
    ) -> None:
        """Place orders, with gaps as between people who know nothing of each other."""
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
            self._run(traffic, Switch().wanted if switch else lambda _placed: rate, count)
        except KeyboardInterrupt:
            self.stderr.write("")
        took = time.monotonic() - started
        self.stderr.write(
            f"{traffic.placed} orders placed in {took:.0f} s, {traffic.mended} paid with another card"
        )

    def _run(self, traffic: Traffic, wanted: Callable[[int], float], count: int | None) -> None:
        chance = traffic.shoppers.chance
        due = told = time.monotonic()
        before = 0.0
        while count is None or traffic.placed < count:
            rate, now = wanted(traffic.placed), time.monotonic()
            if rate != before:
                before, due = rate, now
            try:
                while rate and due <= now and (count is None or traffic.placed < count):
                    traffic.order(now)
                    due += chance.expovariate(rate)
                traffic.come_back(now)
            except Error as problem:
                self.stderr.write(f"the database does not take orders: {str(problem).strip()}")
                connection.close()
                time.sleep(PAUSE)
                due = time.monotonic()  # whoever could not order has gone
            if rate and now - told >= TOLD_EVERY:
                told = now
                self.stderr.write(f"{traffic.placed} orders placed")
            soon = max(due - time.monotonic(), 0.001) if rate else IDLE
            time.sleep(min(soon, IDLE))
