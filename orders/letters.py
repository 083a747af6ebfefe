"""What customers are written, besides the confirmation: each letter is a task of its own.

A letter is posted in the transaction that makes it due, so it is sent exactly if that is committed;
the engine sends it once, and again as long as the mailer fails. Whatever becomes of it, the order
it is about does not wait for it. The confirmation is a step of the order itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from orchestration import api

from . import access, snapshots, tracking
from .agents.notification import PARCEL
from .message import LETTER, Mail, Message, order_number
from .models import Order, OrderStatus
from .money import money

PRIORITY = -1  # orders go first


@dataclass(frozen=True, kw_only=True)
class Letter:
    """A letter's words: paragraphs, and what the link to the order says."""

    subject: str
    paragraphs: Sequence[str]
    act: str


@dataclass(frozen=True, kw_only=True)
class Recipient:
    """Whom a letter is for, and about which order."""

    order: UUID
    name: str
    language: str

    @property
    def number(self) -> str:
        """The order's number."""
        return order_number(self.order)


def confirmation(to: Recipient, total: int, currency: str) -> Mail:
    """Return the mail that says that the order is on its way; `total` in minor units."""
    with translation.override(to.language):
        return _mail(
            to,
            Letter(
                subject=_("Your order %(number)s is confirmed") % {"number": to.number},
                paragraphs=[
                    _("Your order %(number)s over %(total)s is paid for and on its way to you.")
                    % {"number": to.number, "total": money(total, currency)},
                    _("Your parcel's tracking number is %(parcel)s.") % {"parcel": PARCEL},
                    _("Thank you, and enjoy it."),
                ],
                act=pgettext("a link in a letter", "See your order"),
            ),
        )


def received(message: Message) -> api.Posting:
    """Return the letter that says that an order is here, to be posted with the order."""
    to = Recipient(order=message.order, name=message.address.name, language=message.language)
    with translation.override(to.language):
        values = {"number": to.number, "total": money(message.total, message.currency)}
        letter = Letter(
            subject=_("We received your order %(number)s") % values,
            paragraphs=[
                _("Thank you for your order %(number)s over %(total)s.") % values,
                _("We prepare it now, and write again when it is on its way."),
            ],
            act=_("Follow your order"),
        )
        return _posting("received", to, message.email, letter)


def tell(orders: Mapping[UUID, int]) -> None:
    """Post what orders have to be told now; `orders` are ids with the number of the news.

    Whatever happened since then counts: of an order that was mended meanwhile nothing is said.
    """
    for order in Order.objects.filter(id__in=orders).order_by("id"):
        progress = snapshots.of(order)
        if progress is None:
            continue
        to = Recipient(order=order.id, name=order.name, language=order.language)
        with translation.override(to.language):
            found = tracking.track(
                progress,
                placed_at=order.created_at,
                now=timezone.now(),
                asked=order.request,
            )
            if order.status == OrderStatus.UNDONE:
                _post("cancelled", to, order.email, _cancelled(to, found))
            elif order.status == OrderStatus.FAILED and found.mends:
                number = orders[order.id]
                _post("action-needed", to, order.email, _needed(to, found), number)


def _needed(to: Recipient, found: tracking.Tracking) -> Letter:
    until = min((mend.until for mend in found.mends if mend.until), default=None)
    return Letter(
        subject=_("Your order %(number)s needs you") % {"number": to.number},
        paragraphs=[found.sentence, *_kept(until)],
        act=_("Choose how it goes on"),
    )


def _kept(until: datetime | None) -> list[str]:
    if until is None:
        return []
    at = timezone.localtime(until)
    words = _("We keep your order until %(time)s. After that we cancel it, and you pay nothing.")
    return [words % {"time": f"{at:%H:%M} {at.tzname()}"}]


def _cancelled(to: Recipient, found: tracking.Tracking) -> Letter:
    return Letter(
        subject=_("Your order %(number)s was cancelled") % {"number": to.number},
        paragraphs=[found.sentence, _("Nothing of it will be sent to you.")],
        act=pgettext("a link in a letter", "See your order"),
    )


def _post(kind: str, to: Recipient, email: str, letter: Letter, number: int = 0) -> None:
    api.post([_posting(kind, to, email, letter, number)])


def _posting(kind: str, to: Recipient, email: str, letter: Letter, number: int = 0) -> api.Posting:
    """Return a letter to be posted; the same kind about the same news of an order is posted once."""
    reference = f"{to.order}:{kind}" + (f":{number}" if number else "")
    data: dict[str, Any] = {"number": to.number, "email": email}
    data["mail"] = _mail(to, letter).as_json()
    return api.Posting(workflow=LETTER, reference=reference, data=data, priority=PRIORITY)


def _mail(to: Recipient, letter: Letter) -> Mail:
    values = {
        "letter": letter,
        "to": to,
        "link": f"{settings.SITE_URL}{access.link(to.order)}",
    }
    return Mail(
        subject=letter.subject,
        text=render_to_string("mail/letter.txt", values),
        html=render_to_string("mail/letter.html", values),
    )
