"""The test cards: payment methods that determine the outcome of an authorization.

| payment method | outcome |
| --- | --- |
| pm_card_visa | succeeds |
| pm_card_visa_chargeDeclined | is declined |
| pm_card_visa_chargeDeclinedInsufficientFunds | is declined: insufficient funds |
| pm_card_threeDSecure2Required | the bank asks the customer, on a page of its own |
| pm_card_riskLevelElevated | succeeds, with a high risk |
| pm_card_radarBlock | is declined: the risk is too high |
| pm_card_sandbox_bankApp | the customer confirms in the bank's app, a moment later |
| pm_card_sandbox_authorizationExpires | is authorized, but has expired when it is captured |
| pm_card_sandbox_timeoutTwice | two requests time out without an effect, the third succeeds |
| pm_card_sandbox_replyLost | succeeds, but the first reply is lost |

The first six are Stripe's own. The others are the sandbox's: they need no fault script. The last two
count the requests of each idempotency key, so that every order paid with them has the same outcome.
"""

from typing import NamedTuple

from sandbox.database import Database
from sandbox.faults import KINDS, Fault
from sandbox.partner import Call


class Card(NamedTuple):
    """A payment method and its behaviour: `decline` is Stripe's code and message.

    `asks`: the bank asks the customer; `confirmed_after` are the seconds until the customer confirms
    without its page. `expires`: an authorization is gone at once. `risk` is the score, from 0 to 99.
    `fault` is the kind of fault that the first `faulty_requests` of each key meet.
    """

    method: str
    meaning: str
    decline: tuple[str, str] | None = None
    fault: str | None = None
    faulty_requests: int = 0
    asks: bool = False
    confirmed_after: float | None = None
    expires: bool = False
    risk: int = 12


CARDS = {
    card.method: card
    for card in (
        Card("pm_card_visa", "Succeeds."),
        Card(
            "pm_card_visa_chargeDeclined",
            "Is declined.",
            decline=("generic_decline", "Your card was declined."),
        ),
        Card(
            "pm_card_visa_chargeDeclinedInsufficientFunds",
            "Is declined: insufficient funds.",
            decline=("insufficient_funds", "Your card has insufficient funds."),
        ),
        Card("pm_card_threeDSecure2Required", "The bank asks the customer.", asks=True),
        Card("pm_card_riskLevelElevated", "Succeeds, with a high risk.", risk=75),
        Card(
            "pm_card_radarBlock",
            "Is declined: the risk is too high.",
            decline=("fraudulent", "Your card was declined."),
        ),
        Card(
            "pm_card_sandbox_bankApp",
            "The customer confirms in the bank's app, a second later.",
            asks=True,
            confirmed_after=1.0,
        ),
        Card(
            "pm_card_sandbox_authorizationExpires",
            "Is authorized, but has expired when it is captured.",
            expires=True,
        ),
        Card(
            "pm_card_sandbox_timeoutTwice",
            "Times out twice without an effect, then succeeds.",
            fault="timeout",
            faulty_requests=2,
        ),
        Card(
            "pm_card_sandbox_replyLost",
            "Succeeds, but the first reply is lost; a retry gets the result.",
            fault="reset_after_effect",
            faulty_requests=1,
        ),
    )
}


class CardFaults:
    """Counts, per idempotency key, the faults that a test card has caused."""

    def __init__(self, database: Database) -> None:
        """Keep the counts in the database, across restarts."""
        self._database = database

    def count(self, key: str) -> int:
        """Return how many requests of a key have met their card's fault."""
        row = self._database.execute("SELECT fired FROM card_faults WHERE key = ?", (key,))
        return sum(row.fetchone() or ())

    def pick(self, call: Call) -> Fault | None:
        """Return the fault that the card of an authorization causes, and count it."""
        if call.action != "authorize":
            return None
        card = CARDS.get(call.params.get("payment_method", ""))
        if card is None or card.fault is None or self.count(call.key) >= card.faulty_requests:
            return None
        self._database.execute(
            "INSERT INTO card_faults VALUES (?, 1) ON CONFLICT DO UPDATE SET fired = fired + 1",
            (call.key,),
        )
        return Fault(0, card.fault, params=dict(KINDS[card.fault]))
