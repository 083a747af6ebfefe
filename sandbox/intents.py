"""Payment intents as the payment partner keeps and shows them, in the shape of Stripe's."""

from dataclasses import dataclass, field

from sandbox.cards import CARDS
from sandbox.partner import Entry, Json

HELD, CAPTURED, CANCELED = "requires_capture", "succeeded", "canceled"
ASKS, REFUSED = "requires_action", "requires_payment_method"
TRANSFER = "customer_balance"  # Stripe's type of payment by bank transfer
RETURN, BANK = "return_url", "bank_url"  # of an intent that awaits its customer
NOT_CONFIRMED = {
    "type": "invalid_request_error",
    "code": "payment_intent_authentication_failure",
    "message": "The customer did not confirm the payment at their bank.",
}


@dataclass(slots=True)
class Intent:
    """A payment intent: requires_capture → succeeded (→ refunds), or → canceled.

    One that awaits its customer begins with requires_action. `automatic`: it is captured at once.
    `pages` has the address of the bank's page, and the one to return to.
    """

    ref: str
    order: str | None
    key: str | None
    amount: int
    currency: str
    created: int
    method: str
    metadata: dict[str, str] = field(default_factory=dict)
    automatic: bool = False
    pages: dict[str, str] = field(default_factory=dict)
    status: str = HELD
    captured: int = 0
    refunded: int = 0
    capture_key: str | None = None
    expired: bool = False

    @classmethod
    def made_by(cls, entry: Entry) -> "Intent":
        """Return the intent that an entry made."""
        method, metadata, *more = entry.detail  # entries of the former release have two
        automatic, pages = more or (False, {})
        return cls(
            ref=entry.ref or "",
            order=entry.order,
            key=entry.key,
            amount=entry.amount or 0,
            currency=entry.currency or "",
            created=int(entry.at),
            method=method,
            metadata=metadata,
            automatic=automatic,
            pages=pages,
        )

    @property
    def refundable(self) -> int:
        """The captured amount that is not refunded yet, in minor units."""
        return self.captured - self.refunded

    @property
    def by_transfer(self) -> bool:
        """Whether the customer pays by bank transfer."""
        return self.method == TRANSFER

    @property
    def iban(self) -> str:
        """The account that a bank transfer goes to, made up for this intent."""
        number = int.from_bytes(self.ref.encode()[-6:]) % 10**10
        return f"DE00 1001 0010 {number // 10**6:04} {number % 10**6 // 100:04} {number % 100:02}"

    def pay(self) -> None:
        """Have the customer pay: the amount is taken, or held until it is captured."""
        if self.automatic:
            self.status, self.captured, self.capture_key = CAPTURED, self.amount, self.key
        else:
            self.status = HELD

    def show(self, status: str, received: int) -> Json:
        """Return it as Stripe does, with this status and amount received."""
        shown: Json = {
            "id": self.ref,
            "object": "payment_intent",
            "amount": self.amount,
            "amount_capturable": self.amount if status == HELD else 0,
            "amount_received": received,
            "capture_method": "automatic" if self.automatic else "manual",
            "created": self.created,
            "currency": self.currency,
            "latest_charge": None,
            "livemode": False,
            "metadata": self.metadata,
            "payment_method": self.method,
            "payment_method_types": [TRANSFER if self.by_transfer else "card"],
            "status": status,
        }
        if status == ASKS:
            shown["next_action"] = self._next_action()
        elif status == REFUSED:
            shown["last_payment_error"] = NOT_CONFIRMED
        elif not self.by_transfer:
            shown["latest_charge"] = self._charge()
        if status == CANCELED and self.expired:
            shown["cancellation_reason"] = "automatic"
        return shown

    def _charge(self) -> Json:
        risk = CARDS[self.method].risk
        level = "elevated" if risk >= 65 else "normal"
        return {
            "id": "ch_" + self.ref.partition("_")[2],
            "object": "charge",
            "outcome": {"risk_level": level, "risk_score": risk},
        }

    def _next_action(self) -> Json:
        page = self.pages.get(BANK, "")
        if not self.by_transfer:
            return {
                "type": "redirect_to_url",
                "redirect_to_url": {"url": page, RETURN: self.pages.get(RETURN)},
            }
        account = {"iban": self.iban, "bic": "SANDDEXX", "account_holder_name": "Kettlewell"}
        return {
            "type": "display_bank_transfer_instructions",
            "display_bank_transfer_instructions": {
                "amount_remaining": self.amount,
                "currency": self.currency,
                "financial_addresses": [{"type": "iban", "iban": account}],
                "hosted_instructions_url": page,
                "reference": self.ref[-8:].upper(),
                "type": "eu_bank_transfer",
            },
        }
