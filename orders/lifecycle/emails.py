"""E-mails to customers; each is a task of its own, except for the confirmation.

An e-mail is posted in the transaction that makes it due, so it is sent if and only if that commits.
The engine retries it while the mail service fails; the order does not wait for it. The confirmation
is a step of the order's workflow.
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
from orders.agents.notification import PARCEL
from orders.charges import NONE, Charges
from orders.handling import NONE as ORDINARY
from orders.handling import Handling, from_json
from orders.models import Order
from orders.models.order import OrderStatus
from orders.times import moment, shop_zone

from . import access, snapshots, tracking
from .message import EMAIL_WORKFLOW, Mail, Message
from .numbers import order_number
from .paying import PaymentDue, Transfer, asked
from .reminders import Reminder
from .sums import Sum, notes, sums

PRIORITY = -1  # orders go first


@dataclass(frozen=True, kw_only=True)
class Email:
    """The text of an e-mail: paragraphs, the price, where goods go, and the link's label."""

    subject: str
    paragraphs: Sequence[str]
    act: str
    goes_to: Sequence[str] = ()
    sums: Sequence[Sum] = ()


@dataclass(frozen=True, kw_only=True)
class Recipient:
    """The customer that an e-mail is for, and the order it is about, if any."""

    order: UUID | None
    name: str
    language: str

    @classmethod
    def of(cls, order: Order) -> "Recipient":
        """Return the customer of an order."""
        return cls(order=order.id, name=order.name, language=order.language)

    @property
    def number(self) -> str:
        """The order's number, or ""."""
        return order_number(self.order) if self.order else ""


def confirmation(
    to: Recipient,
    total: int,
    currency: str,
    charges: Charges = NONE,
    handling: Handling = ORDINARY,
) -> Mail:
    """Return the confirmation; `total` is in minor units."""
    with translation.override(to.language):
        values = {"number": to.number, "total": api.format_money(total, currency)}
        paid = _("Your order %(number)s for %(total)s is paid and on its way to you.")
        parcel = _("Tracking number: %(parcel)s.") % {"parcel": PARCEL}
        return mail(
            to,
            Email(
                subject=_("Your order %(number)s is confirmed") % {"number": to.number},
                paragraphs=[
                    (paid if handling.ships else _("Your order %(number)s for %(total)s is paid."))
                    % values,
                    *([parcel] if handling.ships else []),
                    *(
                        [_("The codes of your gift cards come in a letter of their own.")]
                        if handling.emailed
                        else []
                    ),
                    _("Thank you, and enjoy it."),
                ],
                act=pgettext("a link in a letter", "See your order"),
                sums=sums(total, currency, charges, handling),
            ),
        )


def received(message: Message) -> api.Posting:
    """Return the e-mail for a received order, to be posted with the order."""
    to = Recipient(order=message.order, name=message.address.name, language=message.language)
    with translation.override(to.language):
        values = {"number": to.number, "total": api.format_money(message.total, message.currency)}
        letter = Email(
            subject=_("We received your order %(number)s") % values,
            paragraphs=[
                _("Thank you for your order %(number)s for %(total)s.") % values,
                *notes(message.handling, timezone.now(), zone=shop_zone()),
                *(
                    []
                    if message.handling.released_at
                    else [
                        _("We are preparing it now, and will write again when it is on its way.")
                        if message.handling.ships
                        else _("We are preparing it now.")
                    ]
                ),
            ],
            act=_("Follow your order"),
            goes_to=message.address.lines if message.handling.ships else (),
            sums=sums(message.total, message.currency, message.charges, message.handling),
        )
        return posting("received", to, message.email, letter)


def send_due(orders: Mapping[UUID, int], reminders: Mapping[str, Reminder] = {}) -> None:
    """Post the e-mails due after status messages; `orders` maps ids to message numbers.

    Uses the current status: an order that was fixed meanwhile gets no e-mail. `reminders` are those of
    payments, by id.
    """
    for order in Order.objects.filter(id__in=orders).order_by("id"):
        progress = snapshots.of(order)
        if progress is None:
            continue
        to = Recipient.of(order)
        with translation.override(to.language):
            seen = tracking.track(
                progress,
                placed_at=order.created_at,
                now=timezone.now(),
                asked=order.request,
                handling=from_json(order.handling),
            )
            if order.status == OrderStatus.UNDONE:
                _post("cancelled", to, order.email, _cancelled(to, seen))
            elif order.status == OrderStatus.FAILED and seen.fixes:
                number = orders[order.id]
                _post("action-needed", to, order.email, _needed(to, seen), number)
            elif seen.payment:
                _post_about_payment(order, to, seen.payment, reminders.get(str(order.id)))


def _post_about_payment(
    order: Order, to: Recipient, payment: PaymentDue, reminder: Reminder | None
) -> None:
    """Post how to transfer the amount, once; and a reminder that counts."""
    # what the bank names: less of it may be left to pay since
    total = api.format_money(asked(snapshots.of(order)), order.currency)
    if reminder and reminder.is_due(transfer=payment.transfer is not None):
        letter = _reminder(to, total, payment, reminder.until)
        _post("reminder", to, order.email, letter, int(reminder.until.timestamp()))
    elif from_json(order.handling).released_at and not payment.transfer:
        # the customer is not at the page, as who has just placed an order is
        _post("confirm", to, order.email, _reminder(to, total, payment))
    if payment.transfer:
        _post("transfer", to, order.email, _how_to_transfer(to, total, payment.transfer))


def _how_to_transfer(to: Recipient, total: str, transfer: Transfer) -> Email:
    return Email(
        subject=_("How to pay for your order %(number)s") % {"number": to.number},
        paragraphs=[
            _("Please transfer %(total)s to this account, with the reference.") % {"total": total},
            *_account(transfer),
            _("We keep your items for seven days, and send them once the money has arrived."),
        ],
        act=pgettext("a link in a letter", "See your order"),
    )


def _account(transfer: Transfer) -> list[str]:
    return [
        _("Account holder: %(holder)s") % {"holder": transfer.holder},
        f"IBAN: {transfer.iban}",
        f"BIC: {transfer.bic}",
        _("Reference: %(reference)s") % {"reference": transfer.reference},
    ]


def _reminder(
    to: Recipient, total: str, payment: PaymentDue, until: datetime | None = None
) -> Email:
    awaits = (
        _("Your transfer of %(total)s has not arrived yet.")
        if payment.transfer
        else _("Your bank waits for you to confirm the payment of %(total)s.")
    )
    return Email(
        subject=_("Your order %(number)s is not paid yet") % {"number": to.number},
        paragraphs=[
            awaits % {"total": total},
            *(_account(payment.transfer) if payment.transfer else []),
            *_cancellation_notice(until),
        ],
        act=_("Pay now"),
    )


def _needed(to: Recipient, seen: tracking.Tracking) -> Email:
    until = min((fix.until for fix in seen.fixes if fix.until), default=None)
    return Email(
        subject=_("Your order %(number)s needs your decision") % {"number": to.number},
        paragraphs=[seen.sentence, *_cancellation_notice(until)],
        act=_("Choose how to continue"),
    )


def _cancellation_notice(until: datetime | None) -> list[str]:
    if until is None:
        return []
    words = _("We keep your order until %(time)s. After that we cancel it, and you pay nothing.")
    return [words % {"time": moment(until, shop_zone())}]


def _cancelled(to: Recipient, seen: tracking.Tracking) -> Email:
    return Email(
        subject=_("Your order %(number)s was cancelled") % {"number": to.number},
        paragraphs=[seen.sentence, _("Nothing will be sent to you.")],
        act=pgettext("a link in a letter", "See your order"),
    )


def _post(kind: str, to: Recipient, email: str, letter: Email, number: int = 0) -> None:
    api.submit_many([posting(kind, to, email, letter, number)])


def posting(kind: str, to: Recipient, email: str, letter: Email, number: int = 0) -> api.Posting:
    """Return an e-mail to post; the reference makes each kind unique per order and message number."""
    reference = f"{to.order}:{kind}" + (f":{number}" if number else "")
    data: dict[str, Any] = {"number": to.number, "email": email}
    data["mail"] = mail(to, letter).as_json()
    return api.Posting(workflow=EMAIL_WORKFLOW, reference=reference, data=data, priority=PRIORITY)


def mail(to: Recipient, letter: Email) -> Mail:
    """Return a letter with what all have: its link leads to the order, or to the shop without one."""
    values = {
        "letter": letter,
        "to": to,
        "link": f"{settings.SITE_URL}{access.link(to.order) if to.order else '/'}",
        "seller": settings.SELLER_ADDRESS,
    }
    return Mail(
        subject=letter.subject,
        text=render_to_string("mail/letter.txt", values),
        html=render_to_string("mail/letter.html", values),
    )
