"""Places orders as the checkout does; prints their ids. Run in a stack's own environment."""

import sys
from uuid import uuid4

import django


def main(count: int, card: str = "pm_card_visa") -> None:
    django.setup()
    from orders.message import Address, Line, Message, fingerprint
    from orders.models import Product
    from orders.placing import confirmation, place

    product = Product.objects.order_by("sku").first()
    for _ in range(count):
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
        print(order, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
