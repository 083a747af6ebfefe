"""The letter about units that were removed from an order."""

from collections.abc import Mapping

from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from orchestration import api
from orders.charges import Charges
from orders.handling import Handling
from orders.models import Order

from . import overpaid, snapshots
from .emails import Email, Recipient, mail
from .message import Mail
from .paying import asked
from .sums import sums


def removed(
    order: Order, units: Mapping[str, int], total: int, charges: Charges, special: Handling
) -> Mail:
    """Return the letter that an order is without these units, by SKU, and what it costs then."""
    to, progress = Recipient.of(order), snapshots.of(order)
    names = dict(order.lines.values_list("sku", "name"))
    with translation.override(to.language):
        amount = asked(progress)
        values = {"asked": api.format_money(amount, order.currency)}
        letter = Email(
            subject=_("You removed something from your order %(number)s") % {"number": to.number},
            paragraphs=[
                _("This is no longer in your order:"),
                *(f"{count} x {_(names[sku])}" for sku, count in units.items()),
                *([overpaid.in_words(progress) % values] if amount > total - special.paid else []),
                _("This is what your order costs now:"),
            ],
            act=pgettext("a link in a letter", "See your order"),
            sums=sums(total, order.currency, charges, special),
        )
        return mail(to, letter)
