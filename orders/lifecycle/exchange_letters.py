"""The letter that something is sent for a return."""

from django.utils import translation
from django.utils.translation import gettext as _

from orchestration import api
from orders.models import Return

from .emails import Email, Recipient, posting
from .message import Message
from .numbers import order_number
from .sums import sums


def placed(row: Return, message: Message) -> api.Posting:
    """Return the letter about a replacement, to be posted with it."""
    to = Recipient(order=message.order, name=message.address.name, language=message.language)
    with translation.override(to.language):
        values = {"number": to.number, "before": order_number(row.order_id)}
        letter = Email(
            subject=_("We send you order %(number)s for your return") % values,
            paragraphs=[
                _("What you sent back of order %(before)s has arrived.") % values,
                *([row.note] if row.note else []),
                _("For it you get these, as order %(number)s:") % values,
                *(f"{line.quantity} x {_(line.name)}" for line in message.lines),
                _("What you sent back pays for them."),
                *(
                    [_("They cost less than that, and the rest is paid back to you.")]
                    if message.total < row.amount
                    else []
                ),
                _("We will write again when they are on their way."),
            ],
            act=_("Follow your order"),
            goes_to=message.address.lines,
            sums=sums(message.total, message.currency, message.charges, message.handling),
        )
        return posting("replacement", to, message.email, letter)
