"""The letters about lost parcels: the goods are sent again, or the claim is refused."""

from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from orchestration import api
from orders.agents.notification import PARCEL
from orders.models import Claim

from .emails import Email, Recipient, mail, posting
from .message import Mail


def again(row: Claim) -> Mail:
    """Return the letter that the goods were sent again."""
    to = Recipient.of(row.order)
    with translation.override(to.language):
        letter = Email(
            subject=_("We send your order %(number)s again") % {"number": to.number},
            paragraphs=[
                _("Your parcel did not arrive. We are sorry, and have sent the goods again."),
                _("Your parcel's tracking number is %(parcel)s.") % {"parcel": PARCEL},
            ],
            act=pgettext("a link in a letter", "See your order"),
        )
        return mail(to, letter)


def send_refused(row: Claim) -> None:
    """Post the letter that a parcel has arrived by what is known."""
    to = Recipient.of(row.order)
    with translation.override(to.language):
        letter = Email(
            subject=_("Your parcel of order %(number)s") % {"number": to.number},
            paragraphs=[
                _("We have looked for your parcel. By what we know it has arrived."),
                *([_("The reason: %(reason)s") % {"reason": row.note}] if row.note else []),
                _("If you think otherwise, please write to us."),
            ],
            act=pgettext("a link in a letter", "See your order"),
        )
        api.submit_many([posting(f"claim-refused:{row.id}", to, row.order.email, letter)])
