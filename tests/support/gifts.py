"""Gift cards and products that are not in stock, as tests need them, and orders with them."""

from uuid import uuid4

from orders.lifecycle import gift_issue
from orders.models import Product
from tests.support.shop import fill_cart, open_checkout, order_in, send, token_of


def gift_card_product(sku="gift", price=2500):
    return Product.objects.create(
        sku=sku, slug=sku, name="Gift Card", kind="Gifts", summary="By e-mail.", description="A code.",
        price=price, picture="gift-card", delivery="gift_card", tax_class="zero",
    )  # fmt: skip


def issued(amount=1500):
    """Issue a gift card by hand; its code is `unsent`."""
    card = gift_issue.ByHand(
        id=uuid4(), amount=amount, name="Ada", email="ada@example.org", language="en",
        reason="A chip in the mug.",
    )  # fmt: skip
    return gift_issue.by_hand(card, by=None)


def sums(client, **fields):
    """Return the checkout's sums as they are shown for what is typed in."""
    form = {"country": "CH", **fields}
    return client.post("/checkout/sums/", form, headers={"HX-Request": "true"})


def order_of(client, quantities=None, **fields):
    """Place an order with what is typed in, at the price that is shown for it; return its id."""
    fill_cart(client, **(quantities or {"sku_0": 2}))
    open_checkout(client)
    answer = send(client, token_of(sums(client, **fields)), **fields)
    assert answer.status_code == 303, answer.text
    return order_in(answer)
