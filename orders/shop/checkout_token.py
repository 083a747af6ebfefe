"""The signed token of a checkout page: what the customer saw and agrees to.

It has the id of the order, so a page that is sent twice places one order; and the cart's fingerprint
and the total, so customers pay the price that they saw.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.core import signing
from django.utils.translation import gettext as _

from orders.lifecycle.message import fingerprint

from .quote import Quote

SALT = "orders.checkout"
LIFE = 24 * 3600  # seconds


class BadToken(ValueError):
    """The token is invalid or expired; the text is for the customer."""


@dataclass(frozen=True, kw_only=True)
class Token:
    """The offer of a checkout page; `total` is in minor units, and `gift_card` what one pays of it."""

    order: UUID
    cart: str
    total: int
    gift_card: int = 0

    @classmethod
    def offer(cls, order: UUID, quote: Quote) -> "Token":
        """Return the token for a cart at today's prices, with shipping and discount."""
        return cls(
            order=order,
            cart=quote.cart.fingerprint,
            total=quote.total,
            gift_card=quote.handling.gift_card,
        )

    def sign(self) -> str:
        """Return it signed, with the time of issue."""
        values = {"order": str(self.order), "cart": self.cart, **self._amounts}
        return signing.dumps(values, salt=SALT)

    def agreed(self, details: Mapping[str, str]) -> str:
        """Return the fingerprint of this offer and the customer's details."""
        return fingerprint({"cart": self.cart, **self._amounts, "details": dict(details)})

    @property
    def _amounts(self) -> dict[str, int]:
        """What is to be paid, and how; the former release knows the total."""
        card = {"gift_card": self.gift_card} if self.gift_card else {}
        return {"total": self.total, **card}


def read_token(text: str) -> Token:
    """Return the token in `text`; raise `BadToken` unless it was signed within the last day."""
    try:
        values = signing.loads(text, salt=SALT, max_age=LIFE)
    except signing.SignatureExpired:
        raise BadToken(
            _("This page is more than a day old. Please check your order again.")
        ) from None
    except signing.BadSignature:
        raise BadToken(
            _("This page was altered or is incomplete. Please check your order and send it again.")
        ) from None
    return Token(
        order=UUID(values["order"]),
        cart=values["cart"],
        total=values["total"],
        gift_card=values.get("gift_card", 0),
    )
