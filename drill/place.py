"""Places orders as the checkout does; prints their ids. Run in a stack's own environment."""

import sys
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import django

AT_ONCE = 4  # customers


def main(count: int, card: str = "pm_card_visa", sku: str = "") -> None:
    """Place `count` orders of two pieces each, paid by `card`."""
    django.setup()
    from django.db import connection

    from orders.message import Address, Line, Message, fingerprint
    from orders.models import Product
    from orders.placing import confirmation, place

    product = Product.objects.filter(**({"sku": sku} if sku else {})).order_by("sku").first()
    assert product, "the shop sells nothing"

    def one(_: int) -> None:
        order = uuid4()
        message = Message(
            order=order,
            email="ada@example.org",
            address=Address(name="Ada", street="1 Lane", postcode="1", city="Bath", country="GB"),
            payment_method=card,
            currency=product.currency,
            total=2 * product.price,
            lines=[Line(sku=product.sku, name=product.name, unit_price=product.price, quantity=2)],
            confirmation=confirmation(order, "Ada", 2 * product.price, product.currency),
        )
        place(message, fingerprint(message.as_json()))
        sys.stdout.write(f"{order}\n")  # one write: lines of several threads do not mix
        sys.stdout.flush()

    def some(number: int) -> None:
        try:
            for turn in range(number, count, AT_ONCE):
                one(turn)
        finally:
            connection.close()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(some, number) for number in range(AT_ONCE)]:
            done.result()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
