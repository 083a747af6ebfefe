"""Data of a visitor's browser: a cart, and the orders placed without an account.

A cookie names the visitor's row; the first page gives it, and the first change makes the row. So clicks
that are sent at the same time find the same row. It is changed under its lock: none overwrites another.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib.auth.signals import user_logged_out
from django.db import transaction
from django.db.models.functions import Now
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import patch_vary_headers

from .models import Visitor
from .rate_limit import Limit

COOKIE = "visitor"
LIFE = 1_209_600  # seconds after the last change, as for sessions
# rows for one address, which a whole company may share
NEW = Limit("visitor", most=300, seconds=600)
KEY, CONTENT, GIVE = "orders.visitor", "orders.visitor.content", "orders.visitor.give"
FORMER = "cart"  # in the session, where the release before kept it
Content = dict[str, Any]


class TooManyVisitors(Exception):
    """Very many rows were begun from one address; the text is for the customer."""


def give_cookie(
    answer: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: give the cookie with a page that shows a cart, and again with each change."""

    def answered(request: HttpRequest) -> HttpResponseBase:
        response = answer(request)
        if KEY in request.META:
            patch_vary_headers(response, ["Cookie"])
        if request.META.get(GIVE):
            response.set_cookie(
                COOKIE,
                request.META[KEY].hex,
                max_age=LIFE,
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=True,
                samesite="Lax",
            )
        return response

    return answered


def content(request: HttpRequest) -> Content:
    """Return a visitor's data, read-only (one query, none without a cookie)."""
    if CONTENT not in request.META:
        key = _key(request)
        row = None if request.META.get(GIVE) else Visitor.objects.filter(key=key).first()
        request.META[CONTENT] = row.content if row else _former(request)
    stored: Content = request.META[CONTENT]
    return stored


@contextmanager
def changing(request: HttpRequest) -> Iterator[Content]:
    """Change what a visitor has, under the lock of the row; nothing is changed if this fails.

    Raises `TooManyVisitors` if that would begin too many rows.
    """
    key = _key(request)
    rows = Visitor.objects.select_for_update()
    with transaction.atomic():
        row = rows.filter(key=key).first()
        if row is None:
            _begin(request, key)
            row = rows.get(key=key)
        yield row.content
        row.changed_at = Now()
        row.save(update_fields=["content", "changed_at"])
    request.META[CONTENT], request.META[GIVE] = row.content, True


def forget(request: HttpRequest) -> None:
    """Remove what a visitor has: another person may use the browser next."""
    Visitor.objects.filter(key=_key(request)).delete()
    request.META[CONTENT] = {}


@receiver(user_logged_out)
def _forget_with_the_session(request: HttpRequest | None = None, **_: Any) -> None:
    if request is not None:
        forget(request)


def _begin(request: HttpRequest, key: UUID) -> None:
    """Make the row, unless a request at the same time does."""
    former = _former(request)
    if not former and not NEW.allows_address(request):
        raise TooManyVisitors(NEW.refusal_text)
    Visitor.objects.bulk_create([Visitor(key=key, content=former)], ignore_conflicts=True)
    if former:
        request.session.pop(FORMER, None)


def _former(request: HttpRequest) -> Content:
    """Return the cart that the release before kept in the session."""
    cart = request.session.get(FORMER)
    return {FORMER: cart} if isinstance(cart, dict) else {}


def _key(request: HttpRequest) -> UUID:
    """Return the key of the visitor's row; a browser without the cookie gets a new one."""
    if KEY not in request.META:
        try:
            request.META[KEY] = UUID(request.COOKIES.get(COOKIE, ""))
        except ValueError:
            request.META[KEY], request.META[GIVE] = uuid4(), True
    key: UUID = request.META[KEY]
    return key
