"""What was typed into a form whose session had ended, until it is shown again after the login.

Without a session it travels in the page of the login, signed; after it, in the new session. Never kept:
what comes from another site, secrets, files, and more than a page of text.
"""

import time
from typing import Any, cast

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponseBase
from django.middleware.csrf import get_token
from django.urls import reverse
from django.utils.crypto import salted_hmac
from django.views.debug import SafeExceptionReporterFilter

from orders.shop.views.errors import page_before
from orders.shop.views.redirect import see_other

from .filled import filled

KEY = "kept_form"
SALT = "sasweb.kept_form"
LIFE_S = 3600  # to log in again
LONGEST = 65_536  # characters in all
MOST = 500  # fields
SECRET = SafeExceptionReporterFilter.hidden_settings
Kept = dict[str, Any]


def of_request(request: HttpRequest, user: int | None = None) -> Kept | None:
    """Return what a form has sent: None unless it is one of this site's own pages.

    `user` is whose session it was, if that is known: shown to no other one.
    """
    if request.method != "POST" or not of_this_site(request):
        return None
    fields = [
        [name, str(value)]
        for name, values in request.POST.lists()
        for value in values
        if name != "csrfmiddlewaretoken" and not SECRET.search(name)
    ]
    if len(fields) > MOST or sum(len(name) + len(value) for name, value in fields) > LONGEST:
        fields = []
    path = request.get_full_path()
    get_token(request)  # has the browser keep the cookie, if it has none
    # the form stood on the page before, or has a page at its own address
    places = [place for place in (page_before(request), path) if place]
    return {
        "user": user, "path": path, "places": places, "fields": fields, "at": time.time(),
        "whole": bool(fields) and not request.FILES, "browser": _browser(request.META["CSRF_COOKIE"]),
    }  # fmt: skip


def keep_in_session(request: HttpRequest) -> bool:
    """Keep what a form has sent in the session of its user; return whether it was kept."""
    user = getattr(request, "half_in", None) or request.user
    kept = of_request(request) if user.is_authenticated else None
    if kept:
        request.session[KEY] = kept
    return bool(kept)


def signed(kept: Kept) -> str:
    """Return it as a text that the page of the login carries."""
    return signing.dumps(kept, salt=SALT, compress=True)


def restore(request: HttpRequest, user: int) -> bool:
    """Take what the page of the login carried into the session of who has logged in."""
    try:
        kept = signing.loads(request.POST.get("kept", ""), salt=SALT, max_age=LIFE_S)
    except signing.BadSignature:
        return False
    browser = _browser(request.COOKIES.get(settings.CSRF_COOKIE_NAME, ""))
    # whose it was is not known: then it is who has the browser
    if kept["user"] != user and (kept["user"] is not None or kept.get("browser") != browser):
        return False
    request.session[KEY] = kept
    return True


def place(request: HttpRequest) -> str:
    """Return the address at which the form is shown next."""
    places = request.session[KEY]["places"]
    return str(places[0]) if places else reverse("kept_form")


def pop(request: HttpRequest) -> Kept | None:
    """Return what is kept in the session, and forget it."""
    kept = request.session.pop(KEY, None)
    return cast("Kept", kept) if kept and time.time() - kept["at"] < LIFE_S else None


def show(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return a page with its form filled in as it was; lead on where it does not have that form."""
    kept = request.session.get(KEY)
    if not kept or request.method != "GET" or "HX-Request" in request.headers:
        return response
    if kept["places"][:1] != [request.get_full_path()] or time.time() - kept["at"] > LIFE_S:
        return response
    html = ""
    if response.status_code == 200 and hasattr(response, "text"):
        html = filled(response.text, kept, request.get_full_path())
    if html:
        response.content = html.encode()  # type: ignore[attr-defined] # it has a text
        response["Cache-Control"] = "no-store"
        pop(request)
        return response
    request.session[KEY] = {**kept, "places": kept["places"][1:]}
    return see_other(place(request))


def _browser(cookie: str) -> str:
    """Return a digest by which a browser is known that has no session: of its cookie against forged forms."""
    return salted_hmac(SALT, cookie, algorithm="sha256").hexdigest()


def of_this_site(request: HttpRequest) -> bool:
    """Return whether a browser sent a request from a page of this site."""
    own = f"{request.scheme}://{request.get_host()}"
    return request.headers.get("Origin") in {own, *settings.CSRF_TRUSTED_ORIGINS}
