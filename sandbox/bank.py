"""The customers' bank: what customers do about payment intents that await them, on its page or in its app."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from sandbox.background import Background
from sandbox.cards import CARDS
from sandbox.intents import ASKS, Intent
from sandbox.ledger import Ledger
from sandbox.partner import Call, Entry
from sandbox.payment import Payment
from sandbox.refusals import PAYMENT, Refusal
from sandbox.webhooks import Webhooks


class Bank:
    """Acts for customers, and has the payment partner report it."""

    def __init__(
        self,
        ledger: Ledger,
        webhooks: Webhooks,
        background: Background,
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        self._ledger = ledger
        self._webhooks = webhooks
        self._pause = pause
        self._background = background

    def intent(self, ref: str) -> Intent:
        """Return an intent; raises a 404 Refusal."""
        return self._payment.intent(ref)

    def act(self, ref: str, action: str) -> Entry:
        """Have a customer confirm or refuse a payment; raises Refusal if it is too late for that."""
        entry = self._ledger.act(PAYMENT, action, ref)
        self._ledger.commit()  # what is reported is durable
        intent = self.intent(ref)
        self._webhooks.about(entry, intent.show(intent.status, intent.captured))
        return entry

    def notice(self, call: Call, ref: str) -> None:
        """Have happen what follows a new intent without a request, by its card."""
        card = CARDS.get(str(call.params.get("payment_method")))
        if call.action != "authorize" or card is None:
            return
        if card.expires and not self.intent(ref).automatic:
            self.act(ref, "expire")
        elif card.confirmed_after is not None:
            self._background.start(self._confirm(ref, card.confirmed_after))

    def resume(self) -> None:
        """Have confirmed what a customer was about to confirm when the former run ended."""
        for ref, intent in self._payment.intents.items():
            card = CARDS.get(intent.method)
            if intent.status == ASKS and card and card.confirmed_after is not None:
                self._background.start(self._confirm(ref, card.confirmed_after))

    @property
    def _payment(self) -> Payment:
        partner = self._ledger.partners[PAYMENT]
        assert isinstance(partner, Payment)  # noqa: S101 - for the type checker
        return partner

    async def _confirm(self, ref: str, seconds: float) -> None:
        await self._pause(seconds)
        with suppress(Refusal):  # it was cancelled, or confirmed on the bank's page
            self.act(ref, "confirm")
