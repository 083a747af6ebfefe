"""Discount codes: who may use one, and how often.

A use is counted in the transaction that places the order, under a lock of the code's row, so that a limit
holds however many customers come at once. Orders that are undone give their use back.
"""

import hashlib
from collections.abc import Iterable
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from orchestration.api import format_money
from orders.charges import Discount
from orders.currency import shop_currency
from orders.models import DiscountCode, DiscountUse
from orders.normal import email_key
from orders.times import moment


class NotValid(ValueError):
    """The code cannot be used; the text is for the customer."""


def find(code: str, subtotal: int, email: str = "") -> Discount:
    """Return the discount of a code for goods of this price; raise `NotValid` otherwise.

    Limits are looked at, and not counted: `use` does that. Without an e-mail address, those of all only.
    """
    row = _usable(_rows(code).first(), subtotal, email)
    discount = Discount(code=row.code, percent=row.percent, amount=row.amount)
    if discount.of(subtotal) > subtotal:
        raise NotValid(_("This code takes off more than your order costs."))
    return discount


@transaction.atomic
def use(order: UUID, code: str, subtotal: int, email: str) -> None:
    """Count the use of a code by an order that is placed; raise `NotValid` beyond its limits."""
    row = _usable(locked(_rows(code)).first(), subtotal, email)
    DiscountUse.objects.create(order=order, code=row, customer=_digest(email))
    _rows(code).update(used=F("used") + 1)


def locked(rows: QuerySet[DiscountCode]) -> QuerySet[DiscountCode]:
    """Have a code's row wait for the placements that use it, and these for this one."""
    return rows.select_for_update(no_key=True)


@transaction.atomic
def give_back(orders: Iterable[UUID | str]) -> None:
    """Return the uses of orders that were undone, once; most orders have none (one query)."""
    undone = list(orders)
    codes = list(DiscountUse.objects.filter(order__in=undone).values_list("code", flat=True))
    # the code's row before its uses, as `use` does, and codes in one order: no two wait for each other
    for row in locked(DiscountCode.objects.filter(pk__in=codes).order_by("pk")) if codes else ():
        gone, _by_model = DiscountUse.objects.filter(order__in=undone, code=row).delete()
        DiscountCode.objects.filter(pk=row.pk).update(used=F("used") - gone)


def _rows(code: str) -> QuerySet[DiscountCode]:
    # codes are kept in capitals: orders/admin_prices.py
    return DiscountCode.objects.filter(code=code.strip().upper(), currency=shop_currency())


def _usable(row: DiscountCode | None, subtotal: int, email: str) -> DiscountCode:
    """Return a code's row if it can be used; raise `NotValid` with the reason otherwise."""
    now = timezone.now()
    if row is None or not row.active:
        raise NotValid(_("We do not know this code. Please compare it with what you were sent."))
    if row.starts_at and now < row.starts_at:
        raise NotValid(_("This code is valid from %(time)s.") % {"time": moment(row.starts_at)})
    if row.ends_at and now >= row.ends_at:
        raise NotValid(_("This code was valid until %(time)s.") % {"time": moment(row.ends_at)})
    if subtotal < row.minimum:
        least = format_money(row.minimum, row.currency)
        raise NotValid(_("This code is for orders of %(least)s and more.") % {"least": least})
    if row.most is not None and row.used >= row.most:
        raise NotValid(_("This code has been used up."))
    if row.most_each is not None and email and _uses(row, email) >= row.most_each:
        raise NotValid(_("You have used this code already."))
    return row


def _uses(row: DiscountCode, email: str) -> int:
    return DiscountUse.objects.filter(code=row, customer=_digest(email)).count()


def _digest(email: str) -> str:
    return hashlib.sha256(email_key(email).encode()).hexdigest()
