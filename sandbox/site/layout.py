"""Shared parts of all pages: the document, its headers, the origin check, and formatters."""

import time
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import blake2b
from html import escape
from pathlib import Path

from aiohttp.web import BaseRequest, Response

from orchestration.payloads.currencies import SYMBOLS, digits
from sandbox.refusals import Refusal

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # not stricter: without a referrer, a browser posts a form with the origin "null"
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
FOLDER = Path(__file__).parent
TYPES = {"sandbox.css": "text/css", "sandbox.js": "text/javascript", "sandbox.svg": "image/svg+xml"}
FILES = {f"/{name}": (FOLDER.joinpath(name).read_bytes(), kind) for name, kind in TYPES.items()}
VERSION = blake2b(b"".join(content for content, _ in FILES.values()), digest_size=4).hexdigest()
NAV = {"/": "Partners", "/mail/": "Mail"}


def document(title: str, body: str, *, at: str, status: int = 200, live: bool = True) -> Response:
    """Return a page; `body` is HTML, `at` the path that the navigation marks as current.

    A `live` page refreshes itself, and stays as its forms are sent.
    """
    script = f'<script src="/sandbox.js?{VERSION}" defer></script>' if live else ""
    links = "".join(
        f'<a href="{href}"{" aria-current=page" if href == at else ""}>{name}</a>'
        for href, name in NAV.items()
    )
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title>'
        f'<link rel="icon" href="/sandbox.svg?{VERSION}" type="image/svg+xml">'
        f'<link rel="stylesheet" href="/sandbox.css?{VERSION}">'
        f"{script}</head><body>"
        '<a class="hide" href="#content">Skip to content</a>'
        '<header class="bar"><div class="bar-in"><a class="brand" href="/">'
        f'<img src="/sandbox.svg?{VERSION}" alt="" width="28" height="28">Sandbox</a>'
        f'<nav aria-label="Sandbox">{links}</nav></div></header>'
        f'<main id="content">{body}</main><footer><p>API: '
        '<a href="/ledger">ledger</a> <a href="/ledger/summary">totals per order</a> '
        '<a href="/inventory/stock">stock</a> <a href="/mail/messages">mail</a> '
        '<a href="/faults">faults</a></p></footer></body></html>\n'
    )
    return Response(text=text, status=status, content_type="text/html", headers=HEADERS)


def file(path: str) -> Response:
    """Return the stylesheet, the script or the icon; links to it carry its version."""
    content, kind = FILES[path]
    headers = HEADERS | {"Cache-Control": "public, max-age=86400"}
    return Response(body=content, content_type=kind, charset="utf-8", headers=headers)


def back_to(address: str) -> Response:
    """Return the redirect that answers a form."""
    return Response(status=303, headers=HEADERS | {"Location": address})


def check_origin(request: BaseRequest) -> None:
    """Refuse requests from pages of other sites; raises a 403 Refusal.

    A client that is not a browser sends neither header, and is accepted.
    """
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    if site is not None:
        foreign = site not in ("same-origin", "none")
    else:
        foreign = origin is not None and origin.partition("://")[2] != request.headers.get("Host")
    if foreign:
        raise Refusal(
            403,
            "other_site",
            "The request came from a page of another site. Use the sandbox's own pages.",
        )


def clock(at: float) -> str:
    """Return a Unix time as a time element: the hour in UTC, and the day unless it is today."""
    moment = datetime.fromtimestamp(at, UTC)
    today = moment.date() == datetime.fromtimestamp(time.time(), UTC).date()
    shown = moment.strftime("%H:%M:%S" if today else "%-d %b %H:%M:%S")
    return f'<time datetime="{moment.isoformat(timespec="seconds")}">{shown}</time>'


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, as in "1 request" and "2,000 requests"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def money(amount: int, currency: str) -> str:
    """Return an amount in minor units as text, as in "€5.90" and "CHF 5.90"."""
    code = currency.upper()
    places = digits(code)
    return f"{SYMBOLS.get(code, f'{code} ')}{Decimal(amount).scaleb(-places):,.{places}f}"


def duration(seconds: float) -> str:
    """Return a duration as text, as in "2 min 10 s"."""
    whole = max(int(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return count(whole // 86_400, "day")
