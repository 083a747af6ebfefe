"""The letters of a return: its label, and that it ended without money."""

from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from orchestration import api
from orders.agents.notification import PARCEL
from orders.models import Return

from .emails import Email, Recipient, mail, posting
from .message import Mail


def label(row: Return) -> Mail:
    """Return the letter with the label of a return."""
    to = Recipient.of(row.order)
    with translation.override(to.language):
        letter = Email(
            subject=_("The label for your return of order %(number)s") % {"number": to.number},
            paragraphs=[
                _("Please put these into a parcel:"),
                *(f"{line['quantity']} x {_(line['name'])}" for line in row.lines),
                _("Send it within 30 days. It costs you nothing."),
                _("The number of your label is %(parcel)s.") % {"parcel": PARCEL},
            ],
            act=_link(),
        )
        return mail(to, letter)


def send_lapsed(row: Return) -> None:
    """Post the letter that a return ended, as its parcel did not come."""
    to = Recipient.of(row.order)
    with translation.override(to.language):
        letter = Email(
            subject=_("Your return of order %(number)s has ended") % {"number": to.number},
            paragraphs=[
                _(
                    "We have no parcel from you, so we ended this return. Its label is no longer valid."
                ),
                _("If you have sent the parcel, please write to us."),
            ],
            act=_link(),
        )
        _post("return-lapsed", row, to, letter)


def send_refused(row: Return) -> None:
    """Post the letter that nothing is paid back, and why."""
    to = Recipient.of(row.order)
    with translation.override(to.language):
        letter = Email(
            subject=_("Your return of order %(number)s") % {"number": to.number},
            paragraphs=[
                _("Your return has arrived. We are sorry that we cannot pay anything back for it."),
                *([_("The reason: %(reason)s") % {"reason": row.note}] if row.note else []),
            ],
            act=_link(),
        )
        _post("return-refused", row, to, letter)


def _link() -> str:
    return pgettext("a link in a letter", "See your order")


def _post(kind: str, row: Return, to: Recipient, letter: Email) -> None:
    api.submit_many([posting(f"{kind}:{row.id}", to, row.order.email, letter)])
