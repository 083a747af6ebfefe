"""Customers' accounts: an e-mail address as the name, a usual address, and the orders.

An order placed as a guest never joins an account by its e-mail address: nobody has proved that the
address is theirs. It stays reachable by its link.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q

from .message import Address, order_number
from .models import Order, Placement, Profile

LONGEST_NAME = 150  # characters, of a user's name, which here is an address
PAGE = 20  # orders


class Taken(Exception):
    """There is an account of this name already."""


def account_name(email: str) -> str:
    """Return the name of the account with this address: capitals make no difference."""
    return email.strip().lower()


def open_account(email: str, password: str) -> User:
    """Make an account; raise `Taken` if there is one."""
    users = get_user_model().objects
    try:
        with transaction.atomic():
            return users.create_user(account_name(email), email.strip(), password)
    except IntegrityError:
        raise Taken from None


def usual_address(customer: User) -> Address | None:
    """Return where a customer's orders go: as they told us, otherwise as the last one did."""
    known = Profile.objects.filter(user=customer).first()
    known_by = known or Order.objects.filter(customer=customer).order_by("-created_at").first()
    if known_by is None:
        return None
    return Address(
        name=known_by.name,
        street=known_by.street,
        postcode=known_by.postcode,
        city=known_by.city,
        country=known_by.country,
    )


def keep_address(customer: User, address: Address) -> None:
    """Have a customer's orders usually go there."""
    Profile.objects.update_or_create(
        user=customer,
        defaults={
            "name": address.name,
            "street": address.street,
            "postcode": address.postcode,
            "city": address.city,
            "country": address.country,
        },
    )


@dataclass(frozen=True)
class OrderPage:
    """A page of a customer's orders, newest first; `older` is where the next page begins."""

    orders: Sequence[Order]
    older: UUID | None
    first: bool


def orders_of(customer: User, before: UUID | None = None) -> OrderPage:
    """Return a page of orders, those before one of theirs; somebody else's order is none of them."""
    mine = Order.objects.filter(customer=customer)
    last = mine.filter(id=before).first() if before else None
    rows = mine.order_by("-created_at", "-id")
    if last:
        rows = rows.filter(
            Q(created_at__lt=last.created_at) | Q(id__lt=last.id),
            created_at__lte=last.created_at,
        )
    found = list(rows[: PAGE + 1])
    older = found[PAGE - 1].id if len(found) > PAGE else None
    return OrderPage(orders=found[:PAGE], older=older, first=last is None)


@dataclass(frozen=True)
class Waiting:
    """An order that was placed, and not taken by the submission process yet."""

    id: UUID
    number: str


def waiting_of(customer: User) -> list[Waiting]:
    """Return what a customer placed lately and is no order yet; looks at the last ten only."""
    placed = Placement.objects.filter(customer=customer).order_by("-created_at")
    ids = list(placed.values_list("order", flat=True)[:10])
    taken = set(Order.objects.filter(id__in=ids).values_list("id", flat=True)) if ids else set()
    return [Waiting(id=one, number=order_number(one)) for one in ids if one not in taken]
