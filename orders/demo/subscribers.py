"""The demo's subscribers: one whose orders come, and one who has paused."""

from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.db import transaction

from orders.cards import Card
from orders.models import Product, Subscription
from orders.models.subscription import Rhythm
from orders.shop.accounts import account_name, find_account
from orders.subscriptions import acts

ADA: dict[str, Any] = {
    "name": "Ada Lovelace", "email": "ada.lovelace@example.org", "street": "Patrick Street 12",
    "postcode": "T12 W8KP", "city": "Cork", "country": "IE", "language": "en", "quantity": 2,
    "weeks": Rhythm.TWO,
}  # fmt: skip
KONRAD: dict[str, Any] = {
    "name": "Konrad Zuse", "email": "konrad.zuse@example.org", "street": "Lange Straße 7",
    "postcode": "20099", "city": "Hamburg", "country": "DE", "language": "de", "quantity": 1,
    "weeks": Rhythm.FOUR,
}  # fmt: skip


@transaction.atomic
def subscribe() -> list[UUID]:
    """Have both subscribe where the shop offers it, once; return the orders that were placed."""
    product = Product.objects.in_stock().filter(subscribable=True).first()
    orders: list[UUID] = []
    if product is None:
        return orders
    for who in (ADA, KONRAD):
        id_ = uuid5(NAMESPACE_URL, f"demo/{who['email']}")
        if Subscription.objects.filter(id=id_).exists():
            continue
        values = {**who, "customer": _account(who["email"]), "payment_method": Card.VISA}
        row = acts.subscribe(id_, product, product.due, values)
        orders += row.orders.values_list("order", flat=True)
        if who is KONRAD:
            acts.pause(id_)
    return orders


def _account(email: str) -> User:
    """Return the account of an address, which its owner opens by a new password."""
    if known := find_account(email):
        return known
    user = User.objects.create_user(account_name(email), email=email)
    EmailAddress.objects.create(user=user, email=email, primary=True, verified=True)
    return user
