"""The customers' bank: what customers do about payment intents that await them, on its page or in its app."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

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
        self, ledger: Ledger, webhooks: Webhooks, pause: Callable[[float], Awaitable[None]]
    ) -> None:
        self._ledger = ledger
        self._webhooks = webhooks
        self._pause = pause
        self._later: set[asyncio.Task[None]] = set()

    def intent(self, ref: str) -> Intent:
        """Return an intent; raises a 404 Refusal."""
        return self._payment.intent(ref)

    def act(self, ref: str, action: str) -> Entry:
        """Have a customer confirm or refuse a payment; raises Refusal if it is too late for that."""
        entry = self._ledger.act(PAYMENT, action, ref)
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
            self._confirm_later(ref, card.confirmed_after)

    def resume(self) -> None:
        """Have confirmed what a customer was about to confirm when the former run ended."""
        for ref, intent in self._payment.intents.items():
            card = CARDS.get(intent.method)
            if intent.status == ASKS and card and card.confirmed_after is not None:
                self._confirm_later(ref, card.confirmed_after)

    async def close(self) -> None:
        """Forget what customers were about to do; `resume` finds it again."""
        later = list(self._later)
        for task in later:
            task.cancel()
        await asyncio.gather(*later, return_exceptions=True)

    @property
    def _payment(self) -> Payment:
        partner = self._ledger.partners[PAYMENT]
        assert isinstance(partner, Payment)  # noqa: S101 - for the type checker
        return partner

    def _confirm_later(self, ref: str, seconds: float) -> None:
        task = asyncio.get_running_loop().create_task(self._confirm(ref, seconds))
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _confirm(self, ref: str, seconds: float) -> None:
        await self._pause(seconds)
        with suppress(Refusal):  # it was cancelled, or confirmed on the bank's page
            self.act(ref, "confirm")
