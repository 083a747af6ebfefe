"""What staff and customers of the shop ask for after orders. Run in a stack's environment."""

import sys
from collections.abc import Callable, Sequence
from uuid import UUID, uuid4

import django

PART = 100  # minor units of each order


def refund(orders: Sequence[str]) -> None:
    """Pay a part of each order back."""
    from orders.lifecycle import refunds

    for order in orders:
        refunds.refund(UUID(order), PART, "by the drill", id_=uuid4(), by=None)


def send_back(orders: Sequence[str]) -> None:
    """Ask for one unit of each order to be sent back."""
    from orders.lifecycle import returns
    from orders.models import OrderLine

    for order in orders:
        line = OrderLine.objects.filter(order=order).first()
        assert line, order
        returns.ask(UUID(order), {line.sku: 1}, "other", id_=uuid4())


ACTIONS: dict[str, Callable[[Sequence[str]], None]] = {
    action.__name__: action for action in (refund, send_back)
}

if __name__ == "__main__":
    django.setup()
    ACTIONS[sys.argv[1]](sys.argv[2:])
