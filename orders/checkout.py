"""The checkout's token: what the customer saw and agrees to, signed by us.

It names the order that will be made, so the same page sent twice is the same order; and it holds
the cart's fingerprint and the total, so nobody pays another price than the one they saw.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.core import signing
from django.utils.translation import gettext as _

from .cart import Priced
from .message import fingerprint

SALT = "orders.checkout"
LIFE = 24 * 3600  # seconds


class BadToken(ValueError):
    """The token is not one of ours, or too old; its text tells the customer."""


@dataclass(frozen=True, kw_only=True)
class Token:
    """What one checkout page offered; `total` in minor units."""

    order: UUID
    cart: str
    total: int

    @classmethod
    def offer(cls, order: UUID, priced: Priced) -> "Token":
        """Return the token for a cart at today's prices."""
        return cls(order=order, cart=priced.fingerprint, total=priced.total)

    def sign(self) -> str:
        """Return it as text that only we can have written, with the time it was issued."""
        values = {"order": str(self.order), "cart": self.cart, "total": self.total}
        return signing.dumps(values, salt=SALT)

    def agreed(self, details: Mapping[str, str]) -> str:
        """Return the fingerprint of this offer together with what the customer filled in."""
        return fingerprint({"cart": self.cart, "total": self.total, "details": dict(details)})


def read_token(text: str) -> Token:
    """Return the token in `text`; raise `BadToken` if we did not sign it within the last day."""
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
    return Token(order=UUID(values["order"]), cart=values["cart"], total=values["total"])
