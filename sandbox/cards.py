"""The test cards: payment methods whose name says how an authorization goes.

| payment method | what happens |
| --- | --- |
| pm_card_visa | succeeds |
| pm_card_visa_chargeDeclined | is declined for good |
| pm_card_visa_chargeDeclinedInsufficientFunds | is declined for want of funds |
| pm_card_sandbox_timeoutTwice | two requests time out with nothing done, the third succeeds |
| pm_card_sandbox_replyLost | succeeds, but the first reply is lost |

The first three are Stripe's own. The last two are the sandbox's: they need no fault script, and count
the requests of each idempotency key, so that every order paid with them goes the same way.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from sandbox.faults import KINDS, Fault
from sandbox.partner import Call

CARD = "c"  # tag of journal rows: a card has spoiled one more request of a key


class Card(NamedTuple):
    """A payment method, in words, and how it goes: `decline` is Stripe's code and message.

    `fault` is the kind that befalls the first `spoils` requests of each key.
    """

    method: str
    meaning: str
    decline: tuple[str, str] | None = None
    fault: str | None = None
    spoils: int = 0


CARDS = {
    card.method: card
    for card in (
        Card("pm_card_visa", "Succeeds."),
        Card(
            "pm_card_visa_chargeDeclined",
            "Is declined for good.",
            decline=("generic_decline", "Your card was declined."),
        ),
        Card(
            "pm_card_visa_chargeDeclinedInsufficientFunds",
            "Is declined for want of funds.",
            decline=("insufficient_funds", "Your card has insufficient funds."),
        ),
        Card(
            "pm_card_sandbox_timeoutTwice",
            "Times out twice with nothing done, then succeeds.",
            fault="timeout",
            spoils=2,
        ),
        Card(
            "pm_card_sandbox_replyLost",
            "Succeeds, but the first reply is lost; a repeat finds it done.",
            fault="reset_after_effect",
            spoils=1,
        ),
    )
}


class SpoiledCards:
    """How often a card has spoiled each key's requests; survives restarts through the journal."""

    def __init__(self, append: Callable[[tuple[Any, ...]], None]) -> None:
        """Start empty; `append` is handed each journal row before it takes effect."""
        self._append = append
        self.spoiled: dict[str, int] = {}

    def reset(self) -> None:
        """Forget all keys."""
        self.spoiled = {}

    def restore(self, row: list[Any]) -> None:
        """Apply one journal row of a former run."""
        self.spoiled[row[1]] = self.spoiled.get(row[1], 0) + 1

    def pick(self, call: Call) -> Fault | None:
        """Return the fault that the card in an authorization asks for, counting it."""
        if call.action != "authorize":
            return None
        card = CARDS.get(call.params.get("payment_method", ""))
        if card is None or card.fault is None:
            return None
        if self.spoiled.get(call.key, 0) >= card.spoils:
            return None
        row = [CARD, call.key]
        self._append(tuple(row))
        self.restore(row)
        return Fault(0, card.fault, params=dict(KINDS[card.fault]))
