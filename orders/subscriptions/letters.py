"""Letters about a subscription: each is a task of its own, posted in the transaction that makes it due."""

from collections.abc import Sequence
from datetime import date

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext as _

from orchestration import api
from orders.lifecycle.emails import PRIORITY, Email, Recipient
from orders.lifecycle.message import EMAIL_WORKFLOW, Address, Mail
from orders.models import Product, Subscription
from orders.models.subscription import Because, Rhythm, SubscriptionState

from .days import in_words
from .offers import Offer


def post_begun(of: Subscription, product: Product, offer: Offer) -> None:
    """Post the letter that confirms a new subscription."""
    with translation.override(of.language):
        values = _values(of, product)
        letter = Email(
            subject=_("Your subscription to %(product)s") % values,
            paragraphs=[
                _("You get %(quantity)d of %(product)s %(rhythm)s.") % values,
                _("The first order is placed. The next one is due on %(day)s.") % values,
                _("You may pause, skip, change or end it at any time, until an order is placed."),
            ],
            act=_("See your subscription"),
            goes_to=address_of(of).lines,
            sums=offer.sums,
        )
        _post("begun", of, letter)


def post_reminder(of: Subscription, product: Product, offer: Offer) -> None:
    """Post the letter that announces the next order, a few days before."""
    with translation.override(of.language):
        values = {**_values(of, product), "total": api.format_money(offer.total, offer.currency)}
        letter = Email(
            subject=_("Your next order of %(product)s: %(day)s") % values,
            paragraphs=[
                _("We order %(quantity)d of %(product)s for you on %(day)s, for %(total)s.")
                % values,
                _("Not this time, or something else? Skip or change it before that day."),
            ],
            act=_("Skip it or change it"),
            goes_to=address_of(of).lines,
            sums=offer.sums,
        )
        _post("reminder", of, letter, of.next_on.isoformat())


def post_price(of: Subscription, product: Product, new: int, starts_on: date) -> None:
    """Post the letter about a higher price and the day from which it is charged."""
    with translation.override(of.language):
        values = {
            **_values(of, product),
            "old": api.format_money(of.price, of.currency),
            "new": api.format_money(new, of.currency),
            "from": in_words(starts_on),
        }
        letter = Email(
            subject=_("A new price for your subscription to %(product)s") % values,
            paragraphs=[
                _(
                    "From %(from)s on, %(product)s costs %(new)s instead of %(old)s in your subscription."
                )
                % values,
                _("Until then you pay the former price."),
                _("If you do not agree, pause or end the subscription before that day."),
            ],
            act=_("See your subscription"),
        )
        _post("price", of, letter, f"{new}:{starts_on}")


def post_passed_over(of: Subscription, product: Product, day: date) -> None:
    """Post the letter about a day without an order, as the product cannot be had."""
    with translation.override(of.language):
        values = {**_values(of, product), "passed": in_words(day)}
        letter = Email(
            subject=_("No order of %(product)s this time") % values,
            paragraphs=[
                _(
                    "%(product)s cannot be ordered at the moment, so nothing was ordered on %(passed)s."
                )
                % values,
                _("You pay nothing for it. The next order is due on %(day)s.") % values,
            ],
            act=_("See your subscription"),
        )
        _post("passed", of, letter, day.isoformat())


def post_halted(of: Subscription, product: Product, key: str) -> None:
    """Post the letter about a subscription that is paused or has ended; `key` names the occasion."""
    with translation.override(of.language):
        values = _values(of, product)
        ended = of.state == SubscriptionState.ENDED
        subject = (
            _("Your subscription to %(product)s has ended")
            if ended
            else _("Your subscription to %(product)s is paused")
        )
        letter = Email(
            subject=subject % values,
            paragraphs=[*_why(of), *_after(ended=ended)],
            act=_("See your subscription"),
        )
        _post("halted", of, letter, key)


def address_of(of: Subscription) -> Address:
    """Return where its orders go."""
    return Address(
        name=of.name,
        street=of.street,
        postcode=of.postcode,
        city=of.city,
        country=of.country,
        region=of.region,
    )


def _why(of: Subscription) -> list[str]:
    match of.because:
        case Because.UNPAID:
            return [_("The last orders were not paid, so we have paused it.")]
        case Because.STAFF:
            return [_("The reason: %(reason)s") % {"reason": of.reason}]
    return [_("You have asked for it.")]


def _after(*, ended: bool) -> Sequence[str]:
    if ended:
        return [_("Nothing is ordered any more. Orders that were placed before are not affected.")]
    return [_("Nothing is ordered until you resume it. You may change the card before that.")]


def _values(of: Subscription, product: Product) -> dict[str, str | int]:
    return {
        "product": _(product.name),
        "quantity": of.quantity,
        "rhythm": str(Rhythm(of.weeks).label),
        "day": in_words(of.next_on),
    }


def _post(kind: str, of: Subscription, letter: Email, key: str = "") -> None:
    """Post a letter; the reference makes each kind unique per subscription and key."""
    to = Recipient(order=of.id, name=of.name, language=of.language)
    mail = _mail(of, to, letter)
    api.submit_many(
        [
            api.Posting(
                workflow=EMAIL_WORKFLOW,
                reference=f"{of.id}:{kind}" + (f":{key}" if key else ""),
                data={"number": to.number, "email": of.email, "mail": mail.as_json()},
                priority=PRIORITY,
            )
        ]
    )


def _mail(of: Subscription, to: Recipient, letter: Email) -> Mail:
    values = {
        "letter": letter,
        "to": to,
        "link": f"{settings.SITE_URL}{of.get_absolute_url()}",
        "seller": settings.SELLER_ADDRESS,
    }
    return Mail(
        subject=letter.subject,
        text=render_to_string("mail/letter.txt", values),
        html=render_to_string("mail/subscription.html", values),
    )
