"""Limits guesses at one account's password from everywhere, without locking its owner out.

A browser in which an account was signed in to keeps a cookie that says so. Tries of browsers without
it are counted by the account's name, over all addresses. So those who guess are slowed down, and the owner
signs in as before where they did so before. OWASP calls this a device cookie.
"""

from functools import cache

from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac

from .normal import email_key
from .rate_limit import Limit

TRIES = Limit("name", most=100, seconds=3600)
LIFE = 31_536_000  # seconds


@cache
def _signer() -> TimestampSigner:
    """Return the signer, made when it is used: a process that signs nothing has no key."""
    return TimestampSigner(salt="orders.device")


def may_try(request: HttpRequest, name: str, limit: Limit | None = None) -> bool:
    """Count a try to sign in, by `TRIES` or another limit; return whether it may be made."""
    return _is_known(request, name) or (limit or TRIES).allows(_normal(name))


def remember(response: HttpResponse, name: str) -> None:
    """Have this browser known to an account that has just signed in with it."""
    response.set_cookie(
        _cookie(name),
        _signer().sign(_digest(name)),
        max_age=LIFE,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _is_known(request: HttpRequest, name: str) -> bool:
    try:
        known = _signer().unsign(request.COOKIES.get(_cookie(name), ""), max_age=LIFE)
    except BadSignature:
        return False
    return known == _digest(name)


def _cookie(name: str) -> str:
    return f"device_{_digest(name)[:12]}"


def _digest(name: str) -> str:
    """Return a keyed hash, so that the cookie names no account."""
    return salted_hmac("orders.device", _normal(name), algorithm="sha256").hexdigest()


def _normal(name: str) -> str:
    return email_key(name)
