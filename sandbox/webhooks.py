"""Webhooks of the payment partner: events about intents, signed as Stripe's are, until they are taken.

What is not answered by a 2xx is sent again, at longer and longer intervals. The fault script can have them
lost, sent twice, or forged (action `webhook`).
"""

import hashlib
import hmac
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import ClientError, ClientSession, ClientTimeout

from sandbox.background import Background
from sandbox.database import Database
from sandbox.fault_script import FaultScript
from sandbox.partner import WEBHOOK, Entry, Json
from sandbox.refusals import PAYMENT
from sandbox.responses import encode

log = logging.getLogger("sandbox")
EVENTS = {  # type by the effect of an entry
    "authorize": "payment_intent.amount_capturable_updated",
    "charge": "payment_intent.succeeded",
    "refuse": "payment_intent.payment_failed",
}
TIMEOUT = ClientTimeout(total=10)  # of one delivery
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # seconds between deliveries of one event
FORGED = "whsec_of_another_account"

Pause = Callable[[float], Awaitable[None]]


class Webhooks:
    """Sends events to one address; without an address there are none."""

    def __init__(
        self, database: Database, script: FaultScript, background: Background, pause: Pause
    ) -> None:
        self.address = ""
        self.secret = ""
        self._database = database
        self._script = script
        self._pause = pause
        self._background = background

    def about(self, entry: Entry, intent: Json) -> None:
        """Send the event about an entry, and note it until it is taken."""
        if not self.address or entry.effect not in EVENTS:
            return
        event = {
            "id": f"evt_{(entry.ref or '').partition('_')[2]}_{entry.seq}",
            "object": "event",
            "created": int(entry.at),
            "livemode": False,
            "type": EVENTS[entry.effect],
            "data": {"object": intent},
        }
        body = encode(event)
        self._database.execute("INSERT INTO webhooks VALUES (?, ?)", (event["id"], body))
        self._background.start(self._deliver(str(event["id"]), body, entry.order))

    def resume(self) -> None:
        """Send what the former run had not delivered."""
        for ref, body in self._database.execute("SELECT * FROM webhooks").fetchall():
            self._background.start(self._deliver(ref, body, None))

    async def _deliver(self, ref: str, body: str, order: str | None) -> None:
        """Send an event until it is taken."""
        seconds, fault = self._script.pick(PAYMENT, WEBHOOK, ref, order)
        kind = fault.kind if fault else ""
        if seconds:
            await self._pause(seconds)
        async with ClientSession(timeout=TIMEOUT) as session:
            if kind == "forged":  # in place of the true one
                await self._post(session, body, FORGED)
            pause = FIRST_PAUSE
            while kind not in {"lost", "forged"} and not await self._post(
                session, body, self.secret
            ):
                await self._pause(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            if kind == "doubled":
                await self._post(session, body, self.secret)
        self._database.execute("DELETE FROM webhooks WHERE ref = ?", (ref,))

    async def _post(self, session: ClientSession, body: str, secret: str) -> bool:
        """Return whether an event was taken."""
        headers = {
            "Content-Type": "application/json",
            "Stripe-Signature": signature(secret, int(time.time()), body),
        }
        with suppress(ClientError, OSError, TimeoutError):
            async with session.post(self.address, data=body, headers=headers) as answer:
                if answer.status < 300:
                    return True
                log.warning("A webhook was answered by %s", answer.status)
        return False


def signature(secret: str, at: int, body: str) -> str:
    """Return Stripe's signature header of a body, at a Unix time in seconds."""
    signed = hmac.digest(secret.encode(), f"{at}.{body}".encode(), hashlib.sha256).hex()
    return f"t={at},v1={signed}"
