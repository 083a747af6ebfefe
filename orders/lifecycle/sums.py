"""How an order's price comes about, line by line, in the active language: for pages and letters."""

from dataclasses import dataclass
from decimal import Decimal

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from orchestration.api import format_money
from orders.charges import Charges
from orders.money import hundredths


@dataclass(frozen=True, kw_only=True)
class Sum:
    """A line: `kind` is subtotal, shipping, discount, total or tax."""

    kind: str
    label: str
    amount: str


def sums(total: int, currency: str, charges: Charges) -> list[Sum]:
    """Return the lines of an order's price; the tax is part of the total."""
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


def percentage(rate: int) -> str:
    """Return hundredths of a percent as the active language writes them: 1900 → 19, 550 → 5.5."""
    percent: Decimal = hundredths(rate)
    return number_format(percent.normalize() if rate % 100 else percent.to_integral_value())
