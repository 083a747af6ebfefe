"""Places orders as the checkout does, and prints their ids. Run in a stack's environment.

With `--every` it goes on until it is stopped, and sends what is not accepted again, as customers do.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import uuid4

import django

CUSTOMERS = 4  # threads
MOST = 5  # times `count`: the limit while too few orders are open


RETRY = 0.2  # seconds until an order is sent again


def _place(products: Sequence[Any], card: str, country: str, *, again: bool) -> str:
    """Place an order of two units each; print its id, and return it."""
    from orders.lifecycle.message import Address, Line, Message, fingerprint
    from orders.lifecycle.placement import confirmation, place

    order, currency = uuid4(), products[0].currency
    total = sum(2 * product.due for product in products)
    message = Message(
        order=order,
        email="ada@example.org",
        address=Address(name="Ada", street="1 Lane", postcode="1", city="Bath", country=country),
        payment_method=card,
        currency=currency,
        total=total,
        lines=[
            Line(sku=product.sku, name=product.name, unit_price=product.due, quantity=2)
            for product in products
        ],
        confirmation=confirmation(order, "Ada", total, currency),
    )
    _send(partial(place, message, fingerprint(message.as_json())), again=again)
    sys.stdout.write(f"{order}\n")  # one write, since threads share the output
    sys.stdout.flush()
    return str(order)


def main(options: argparse.Namespace) -> None:
    """Place `count` orders of two units each, paid by `card`, and more until `flying` are open."""
    count, flying, every = options.count, options.flying, options.every
    django.setup()
    from django.db import connection

    from orchestration.models import Task
    from orchestration.states import LIVE_TASK_STATES
    from orders.lifecycle.message import WORKFLOW
    from orders.models import Product

    known = {product.sku: product for product in Product.objects.order_by("sku")}
    assert known, "the shop has no products"
    first = known[options.sku] if options.sku else next(iter(known.values()))
    products = [first, *([known[options.also]] if options.also else [])]

    def place_one() -> str:
        return _place(products, options.card, options.country, again=bool(every))

    def place_some(number: int) -> list[str]:
        try:
            return [place_one() for _ in range(number)]
        finally:
            connection.close()

    def in_flight(orders: Sequence[str]) -> int:
        mine = Task.objects.filter(
            workflow=WORKFLOW, reference__in=orders
        )  # not the e-mails' tasks
        return len(orders) - mine.exclude(state__in=LIVE_TASK_STATES).count()

    while every:
        place_one()
        time.sleep(every)
    with ThreadPoolExecutor(CUSTOMERS) as pool:
        orders: list[str] = []
        batch = count
        while not orders or (flying and in_flight(orders) < flying):
            if len(orders) > MOST * count:
                sys.exit(f"orders end as fast as they are placed: {flying} are never open")
            shares = [len(range(number, batch, CUSTOMERS)) for number in range(CUSTOMERS)]
            for placed in pool.map(place_some, shares):
                orders += placed
            batch = max(CUSTOMERS, count // 5)


def _send(order: Callable[[], object], *, again: bool) -> None:
    """Place an order; with `again`, until it is accepted."""
    from django.db import Error, connection

    while again:
        with suppress(Error):
            order()
            return
        connection.close()
        time.sleep(RETRY)
    order()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--card", default="pm_card_visa")
    parser.add_argument("--sku", default="")
    parser.add_argument("--also", default="", help="another SKU in each order")
    parser.add_argument("--country", default="GB")
    parser.add_argument("--flying", type=int, default=0)
    parser.add_argument("--every", type=float, default=0.0, help="seconds between two orders")
    main(parser.parse_args())
    os._exit(0)  # an orderly end takes so long on a busy machine that the open orders end meanwhile
