"""Customers' accounts: named by e-mail address, with a usual address and orders.

A guest's order joins an account by its e-mail address once that is confirmed (`confirmations.py`), and not
before. It stays reachable by its link.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q

from orders.lifecycle.message import Address
from orders.lifecycle.numbers import order_number
from orders.models import Order, Placement, Profile
from orders.normal import email_key, in_ascii

from . import confirmations

LONGEST_NAME = 150  # characters of a username, which is the e-mail address
PAGE_SIZE = 20  # orders


def account_name(email: str) -> str:
    """Return the username of a new account with an e-mail address."""
    return email_key(email)


def find_account(email: str) -> User | None:
    """Return the account of an e-mail address, in any form and case."""
    name = account_name(email)
    names = {name, in_ascii(name), email.strip().lower()}
    same = Q()
    for known in names:
        same |= Q(username__iexact=known)  # by the index user_by_name
    users = User.objects.filter(same)[: len(names) * 2]
    return min(users, key=lambda user: (user.username != name, user.pk), default=None)


def open_account(email: str, password: str) -> EmailAddress | None:
    """Create an account; return its address, which is to be confirmed, or None if the account exists.

    One that was never confirmed gets the new password: perhaps another person had typed the address.
    """
    made = User(username=account_name(email), email=User.objects.normalize_email(email.strip()))
    made.set_password(password)  # also for one that exists, so that the answer takes as long
    known = find_account(email)
    if known is None:
        with suppress(IntegrityError), transaction.atomic():
            made.save()
            return EmailAddress.objects.create(user=made, email=made.email, primary=True)
        return None
    address = confirmations.awaited(known)
    if address:
        known.password = made.password
        known.save(update_fields=["password"])
        address.user = known
    return address


def usual_address(customer: User) -> Address | None:
    """Return a customer's saved address, or that of the last order."""
    profile = Profile.objects.filter(user=customer).first()
    source = profile or Order.objects.filter(customer=customer).order_by("-created_at").first()
    if source is None:
        return None
    return Address(
        name=source.name,
        street=source.street,
        postcode=source.postcode,
        city=source.city,
        country=source.country,
        region=source.region,
    )


def save_address(customer: User, address: Address) -> None:
    """Save a customer's usual address."""
    Profile.objects.update_or_create(
        user=customer,
        defaults={
            "name": address.name,
            "street": address.street,
            "postcode": address.postcode,
            "city": address.city,
            "country": address.country,
            "region": address.region,
        },
    )


@dataclass(frozen=True)
class OrderPage:
    """A page of a customer's orders, newest first; `older` is where the next page begins."""

    orders: Sequence[Order]
    older: UUID | None
    first: bool


def orders_of(customer: User, before: UUID | None = None) -> OrderPage:
    """Return a page of a customer's orders, from before one of their orders if given."""
    mine = Order.objects.filter(customer=customer)
    last = mine.filter(id=before).first() if before else None
    rows = mine.order_by("-created_at", "-id")
    if last:
        rows = rows.filter(
            Q(created_at__lt=last.created_at) | Q(id__lt=last.id),
            created_at__lte=last.created_at,
        )
    page = list(rows[: PAGE_SIZE + 1])
    older = page[PAGE_SIZE - 1].id if len(page) > PAGE_SIZE else None
    return OrderPage(orders=page[:PAGE_SIZE], older=older, first=last is None)


@dataclass(frozen=True)
class PendingOrder:
    """An order that is placed but not submitted yet."""

    id: UUID
    number: str


def pending_orders(customer: User) -> list[PendingOrder]:
    """Return those of a customer's last ten placements that are not submitted yet."""
    placed = Placement.objects.filter(customer=customer).order_by("-created_at")
    ids = list(placed.values_list("order", flat=True)[:10])
    taken = set(Order.objects.filter(id__in=ids).values_list("id", flat=True)) if ids else set()
    return [PendingOrder(id=id_, number=order_number(id_)) for id_ in ids if id_ not in taken]
