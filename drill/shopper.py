"""A customer of the shop, who sends a page again when the connection breaks."""

import re
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException, HTTPResponse
from http.cookiejar import CookieJar
from typing import Any

from drill.waiting import wait_for

DETAILS = {
    "name": "Ada Lovelace",
    "email": "ada@example.org",
    "street": "Rue de Lyon 12",
    "postcode": "1203",
    "city": "Genève",
    "country": "CH",
    "payment_method": "pm_card_visa",
}


def value_of(page: str, name: str) -> str:
    """Return the value of the first field of a page's forms with this name."""
    match = re.search(rf'name="{name}" value="([^"]+)"', page)
    assert match, f"the page has no {name}"
    return match[1]


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Return the redirect itself instead of following it."""


class Shopper:
    """One customer with a session; `broken` counts broken connections."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.broken = 0
        self._cookies = CookieJar()
        self._open = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(self._cookies), _Stay
        )

    def buy(self) -> str:
        """Put something into the cart and check out; return the order's id."""
        return self.send(self.open_checkout())

    def open_checkout(self) -> str:
        """Put something into the cart and open the checkout; return the token in its page."""
        page = self._get("/")
        self._post("/cart/add/", {"sku": value_of(page, "sku"), "quantity": "2"}, "/")
        self._get("/checkout/")
        # shipping depends on the country: the token is for the total that the customer sees then
        return value_of(self._send("/checkout/sums/", DETAILS, "/checkout/")[1], "token")

    def send(self, token: str) -> str:
        """Send the checkout's page until it is accepted; return the order's id."""
        place = self._post("/checkout/", {**DETAILS, "token": token}, "/checkout/")
        order = re.search(r"/orders/([0-9a-f-]{36})/", place)
        assert order, f"the order led to {place!r}"
        return order[1]

    def look(self, path: str) -> str:
        """Return a page."""
        return self._get(path)

    def _get(self, path: str) -> str:
        return self._send_until_answered(urllib.request.Request(self.base + path))[1]  # noqa: S310 - our own shop

    def _post(self, path: str, fields: dict[str, str], referer: str) -> str:
        """Send a form; return where it leads."""
        return self._send(path, fields, referer)[0]

    def _send(self, path: str, fields: dict[str, str], referer: str) -> tuple[str, str]:
        cookies = {cookie.name: cookie.value for cookie in self._cookies}
        fields = {**fields, "csrfmiddlewaretoken": cookies.get("csrftoken") or ""}
        request = urllib.request.Request(  # noqa: S310 - our own shop
            self.base + path,
            data=urllib.parse.urlencode(fields).encode(),
            headers={"Referer": self.base + referer},
        )
        return self._send_until_answered(request)

    def _send_until_answered(self, request: urllib.request.Request) -> tuple[str, str]:
        """Send until an answer arrives; return its address and its text."""

        def send() -> tuple[str, str] | None:
            try:
                with self._open.open(request, timeout=10) as response:
                    return self._read(response)
            except urllib.error.HTTPError as answer:
                if answer.code in (302, 303):
                    return answer.headers["Location"], ""
                if answer.code < 500:
                    raise
            except (OSError, HTTPException):
                self.broken += 1
            return None

        answer = wait_for(send, f"{request.full_url} answers", 30, pause=0.2)
        assert answer
        return answer

    def _read(self, response: HTTPResponse) -> tuple[str, str]:
        return response.geturl(), response.read().decode()
