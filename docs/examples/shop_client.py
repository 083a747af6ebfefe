"""An example client of the shop's API: one file, nothing but the standard library. Copy it.

shop = Shop("https://shop.example", token)
placed = shop.place(key="our-order-17", order={...})
for message in shop.messages(wait=20):
    note(message.reference, message.kind)
    shop.acknowledge([message.id])
"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

PATIENCE = 30.0  # seconds for one answer: longer than the longest wait for messages
TRIES = 5


class ShopError(Exception):
    """The shop's answer is a problem: `code` is for programs, the text for people."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.code = str(problem.get("code", ""))
        self.problem = problem
        super().__init__(f"{problem.get('detail', status)} {problem.get('what_to_do', '')}".strip())


class Unreachable(Exception):
    """No answer came from an address, though it was tried more than once; what was asked may be done."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """A status message. Those of one order (`reference`) are numbered: ignore an older number."""

    id: int
    reference: str
    number: int
    kind: str
    at: str
    detail: Mapping[str, Any]
    workflow: str = ""


class Shop:
    """The shop, as one application sees it."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address.rstrip("/")
        self._token = token

    def products(self, page: int = 100) -> Iterator[dict[str, Any]]:
        """Go through what is sold, with today's prices."""
        return self._pages("/api/products", "products", page)

    def place(self, *, key: str, order: Mapping[str, Any]) -> dict[str, Any]:
        """Place an order. Use the same `key` for the same order for ever: it is placed once.

        With a customer's code as `gift_card`, the answer's `to_pay` is what that leaves.
        """
        return self._ask("POST", "/api/orders", order, {"Idempotency-Key": key})

    def order(self, order: str) -> dict[str, Any]:
        """Read an order and how it goes."""
        return self._ask("GET", f"/api/orders/{order}")

    def orders(self, page: int = 50) -> Iterator[dict[str, Any]]:
        """Go through all orders that were placed, newest first."""
        return self._pages("/api/orders", "orders", page)

    def cancel(self, order: str, reason: str = "") -> dict[str, Any]:
        """Cancel an order; raises `ShopError` with the code "cannot_be_cancelled" if it is too late."""
        return self._ask("POST", f"/api/orders/{order}/cancel", {"reason": reason})

    def readdress(self, order: str, address: Mapping[str, Any]) -> dict[str, Any]:
        """Send an order elsewhere; raises `ShopError` with "cannot_be_readdressed" if it is too late."""
        return self._ask("POST", f"/api/orders/{order}/address", address)

    def remove(self, order: str, *, key: str, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Leave `lines` out of an order; raises `ShopError` with "not_removable" if it is too late."""
        body = {"lines": list(lines)}
        return self._ask("POST", f"/api/orders/{order}/remove", body, {"Idempotency-Key": key})

    def send_back(
        self,
        order: str,
        *,
        key: str,
        lines: Sequence[Mapping[str, Any]],
        reason: str = "other",
        exchange_for: Sequence[Mapping[str, Any]] = (),
    ) -> dict[str, Any]:
        """Ask for a return of `lines`, for money or goods; the same `key` is one return of this order."""
        body = {"order": order, "lines": list(lines), "reason": reason}
        body |= {"exchange_for": list(exchange_for)} if exchange_for else {}
        return self._ask("POST", "/api/returns", body, {"Idempotency-Key": key})

    def returns(self, order: str) -> list[dict[str, Any]]:
        """Read the returns of an order."""
        answer = self._ask("GET", f"/api/returns?{urlencode({'order': order})}")
        return list(answer["returns"])

    def claim(self, order: str, parcel: str) -> dict[str, Any]:
        """Say that a parcel, by its tracking number, has not arrived; asked again, it is one claim."""
        return self._ask("POST", "/api/claims", {"order": order, "parcel": parcel})

    def claims(self, order: str) -> list[dict[str, Any]]:
        """Read the claims of an order."""
        answer = self._ask("GET", f"/api/claims?{urlencode({'order': order})}")
        return list(answer["claims"])

    def messages(self, *, wait: int = 0, limit: int = 100) -> list[Message]:
        """Fetch the oldest messages; they come again until they are acknowledged."""
        query = urlencode({"wait": wait, "limit": limit})
        answer = self._ask("GET", f"/api/status-messages?{query}")
        return [Message(**message) for message in answer["messages"]]

    def acknowledge(self, ids: Sequence[int]) -> int:
        """Say that messages were dealt with."""
        done = self._ask("POST", "/api/status-messages/acknowledge", {"ids": list(ids)})
        return int(done["acknowledged"])

    def _pages(self, path: str, name: str, page: int) -> Iterator[dict[str, Any]]:
        address: str | None = f"{path}?{urlencode({'limit': page})}"
        while address:
            answer = self._ask("GET", address)
            yield from answer[name]
            address = answer["next"]

    def _ask(
        self,
        method: str,
        address: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Ask, and again where that is of use: every request of this API may be repeated."""
        for tries_left in reversed(range(TRIES)):
            try:
                return self._ask_once(method, address, body, headers or {})
            except HTTPError as error:
                with error:
                    problem = _problem(error)
                if error.code not in {429, 503} or not tries_left:
                    raise ShopError(error.code, problem) from None
                time.sleep(float(error.headers.get("Retry-After", 1)))
            except (URLError, OSError) as error:
                if not tries_left:
                    why = getattr(error, "reason", error)
                    raise Unreachable(f"{self._address} does not answer: {why}") from None
                time.sleep(2.0 ** (TRIES - 1 - tries_left))
        raise AssertionError("unreachable")

    def _ask_once(
        self, method: str, address: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        request = Request(
            address if address.startswith("http") else self._address + address,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
                **headers,
            },
        )
        with urlopen(request, timeout=PATIENCE) as response:
            answer: dict[str, Any] = json.load(response)
        return answer


def verify(
    headers: Mapping[str, str], body: bytes, secret: str, *, tolerance: float = 300
) -> Message:
    """Return the message in a webhook that was sent to you; raise `ValueError` if the signature is wrong.

    Compare with your own record of `webhook-id` as well: a message may come twice.
    """
    known = {name.lower(): value for name, value in headers.items()}
    if missing := {"webhook-id", "webhook-timestamp", "webhook-signature"} - known.keys():
        raise ValueError(f"it lacks {', '.join(sorted(missing))}")
    if not abs(time.time() - float(known["webhook-timestamp"])) <= tolerance:  # nor NaN
        raise ValueError("it is too old")
    key = (
        base64.b64decode(secret.removeprefix("whsec_"))
        if secret.startswith("whsec_")
        else secret.encode()
    )
    signed = f"{known['webhook-id']}.{known['webhook-timestamp']}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    if not any(
        hmac.compare_digest(signature, expected) for signature in known["webhook-signature"].split()
    ):
        raise ValueError("its signature is wrong")
    return Message(**json.loads(body))


def _problem(error: HTTPError) -> dict[str, Any]:
    try:
        problem = json.load(error)
    except ValueError:
        problem = None
    return problem if isinstance(problem, dict) else {"detail": f"HTTP {error.code}"}
