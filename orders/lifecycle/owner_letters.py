"""Letters that workflows of their own send: of refunds, and with the codes of gift cards."""

from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from orchestration import api
from orders.agents.notification import CODES
from orders.models import Order

from .emails import Email, Recipient, mail
from .message import Mail


def gift_cards(to: Recipient) -> Mail:
    """Return the letter with the codes of gift cards; they are put in as it is sent."""
    with translation.override(to.language):
        about = _("Your gift cards of order %(number)s") if to.order else _("A gift card for you")
        return mail(
            to,
            Email(
                subject=about % {"number": to.number},
                paragraphs=[
                    _("Type this code at the checkout to pay with it, at once or in parts:"),
                    CODES,
                    _("Keep it as you keep money: who has the code can pay with it."),
                ],
                act=pgettext("a link in a letter", "See your order")
                if to.order
                else _("Go to the shop"),
            ),
        )


def refunded(order: Order, amount: int, reason: str, on_card: int = 0) -> Mail:
    """Return the letter about a refund, `on_card` of it to a gift card.

    It is sent once the money is on its way.
    """
    to = Recipient.of(order)
    values = {
        "number": to.number,
        "amount": api.format_money(amount, order.currency),
        "part": api.format_money(on_card, order.currency),
    }
    with translation.override(to.language):
        return mail(
            to,
            Email(
                subject=_("Your refund for order %(number)s") % values,
                paragraphs=[
                    _("We have paid %(amount)s of your order %(number)s back to you.") % values,
                    _("The reason: %(reason)s") % {"reason": reason},
                    *(
                        [_("%(part)s of it are on your gift card again.") % values]
                        if on_card
                        else []
                    ),
                    *([_("Banks take up to ten days to show it.")] if amount > on_card else []),
                ],
                act=pgettext("a link in a letter", "See your order"),
            ),
        )
