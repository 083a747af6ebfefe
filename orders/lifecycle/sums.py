"""How an order's price comes about, line by line, in the active language: for pages and letters."""

from dataclasses import dataclass
from datetime import datetime, tzinfo
from decimal import Decimal

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from orchestration.api import format_money
from orders.charges import Charges
from orders.handling import NONE, Handling
from orders.money import hundredths
from orders.times import moment


@dataclass(frozen=True, kw_only=True)
class Sum:
    """A line: `kind` is subtotal, shipping, discount, total, gift_card, exchange, to_pay or tax."""

    kind: str
    label: str
    amount: str


def sums(total: int, currency: str, charges: Charges, handling: Handling = NONE) -> list[Sum]:
    """Return the lines of an order's price; the tax is part of the total, however that is paid."""
    shipping = (
        format_money(charges.shipping, currency)
        if charges.shipping
        else pgettext("what shipping costs", "free")
    )
    lines = [
        Sum(
            kind="subtotal",
            label=_("Subtotal"),
            amount=format_money(total - charges.extra, currency),
        ),
        Sum(kind="shipping", label=_("Shipping"), amount=shipping),
    ]
    if charges.discount:
        label = _("Discount %(code)s") % {"code": charges.code}
        amount = f"−{format_money(charges.discount, currency)}"  # noqa: RUF001 - a minus sign
        lines.append(Sum(kind="discount", label=label, amount=amount))
    lines.append(Sum(kind="total", label=_("Total"), amount=format_money(total, currency)))
    if handling.paid:
        kind, label = (
            ("exchange", _("Paid by what you sent back"))
            if handling.exchange
            else ("gift_card", _("Paid by gift card"))
        )
        paid = f"−{format_money(handling.paid, currency)}"  # noqa: RUF001 - a minus sign
        left = format_money(total - handling.paid, currency)
        lines += [
            Sum(kind=kind, label=label, amount=paid),
            Sum(kind="to_pay", label=_("Left to pay"), amount=left),
        ]
    lines += [
        Sum(
            kind="tax",
            label=_("includes %(percent)s%% VAT on %(net)s")
            % {"percent": percentage(tax.rate), "net": format_money(tax.net, currency)},
            amount=format_money(tax.tax, currency),
        )
        for tax in charges.taxes
    ]
    return lines


def notes(handling: Handling, now: datetime, *, zone: tzinfo | None = None) -> list[str]:
    """Return what customers are to know of an order that is not a parcel of goods in stock.

    Times are in `zone`, or in the current one.
    """
    lines = []
    if handling.released_at and handling.to_come(now):
        lines.append(
            _(
                "It contains what is not released yet: the whole order waits until %(time)s, and is paid "
                "then. Until then you can cancel it."
            )
            % {"time": moment(handling.released_at, zone)}
        )
    if handling.days == 1:
        lines.append(_("Part of it is made for you: that takes up to a day."))
    elif handling.days:
        words = _("Part of it is made for you: that takes up to %(days)d days.")
        lines.append(words % {"days": handling.days})
    if handling.emailed:
        lines.append(_("The codes of gift cards come by e-mail, once the order is paid."))
    return lines


def percentage(rate: int) -> str:
    """Return hundredths of a percent as the active language writes them: 1900 → 19, 550 → 5.5."""
    percent: Decimal = hundredths(rate)
    return number_format(percent.normalize() if rate % 100 else percent.to_integral_value())
