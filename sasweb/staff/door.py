"""The door of the staff's pages: no address behind it is reached but by a session that is good for it.

A session that still needs a second factor is as good as none, except to the pages that set one up: its user
is anonymous to all other views, and `request.half_in`. So a new page below these addresses is guarded from
the start.
"""

from collections.abc import Callable
from http import HTTPStatus
from math import isfinite
from typing import cast
from urllib.parse import urlencode

from allauth.account.internal.stagekit import get_pending_stage
from allauth.mfa.stages import AuthenticateStage
from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect

from orders.shop.views.errors import page_before
from orders.shop.views.redirect import see_other

from . import sessions
from .sessions import Standing

URLCONF = "sasweb.staff.urls"  # in which allauth's names lead to pages of the staff's login
PAGES = ("/ops/", "/admin/")
BEHIND = (*PAGES, "/login/", "/metrics")
SET_UP = ("/login/second-factor/", "/login/again/")  # to set up a second factor


class Visit(HttpRequest):
    """An authenticated staff request."""

    half_in: User | None = None  # whose password was right, and who has to set a second factor up
    ended: User | None = None  # whose session has ended just now


def visit(request: HttpRequest) -> Visit:
    """Return a request with what the door knows of it."""
    return cast("Visit", request)


def door(
    answer: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware, after that of Django's login: let in, ask for what is missing, or end the session."""

    def guarded(request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(BEHIND):
            return answer(request)
        request.urlconf = URLCONF
        _look(visit(request))
        if request.user.is_authenticated:
            return _with_end(request, answer(request))
        return _turned_away(visit(request)) or answer(request)

    return guarded


def _look(request: Visit) -> None:
    """Set `request.user`; remember a user who still needs the second factor, or whose session ended."""
    request.half_in = request.ended = None
    user = request.user
    if not user.is_authenticated or not sessions.works_here(user):
        return
    if not sessions.began_here(request):
        request.ended = user
        logout(request)
        return
    match sessions.standing(request, user):
        case Standing.IN:
            sessions.touch(request)
        case Standing.HALF:
            request.half_in = user
            if not request.path_info.startswith(SET_UP):
                request.user = AnonymousUser()
        case Standing.ENDED:
            request.ended = user
            logout(request)


def _with_end(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return the response with the seconds that the session has left, by which a page warns its user."""
    left = sessions.seconds_left(request)
    if isfinite(left):
        response["Session-Seconds"] = str(int(left))
    return response


def _turned_away(request: Visit) -> HttpResponseBase | None:
    """Return the way in for who asks for a page; None where the view itself answers strangers."""
    if not request.path_info.startswith(PAGES):
        return None
    if "HX-Request" in request.headers:
        return HttpResponse(status=HTTPStatus.UNAUTHORIZED)  # the page stays, and offers to log in
    if request.method == "POST":
        return _after_form(request) if of_this_site(request) else None
    known = request.half_in or request.ended or _awaits_code(request)
    if request.method not in {"GET", "HEAD"} or not known:
        return None
    query = {"next": request.get_full_path(), **({"ended": "1"} if request.ended else {})}
    return HttpResponseRedirect(f"{_way_in(request)}?{urlencode(query)}")


def _after_form(request: Visit) -> HttpResponse:
    """Return the way in for a sent form, then back to its page, which fills it in again (`drafts.js`)."""
    query = {"next": form_page(request), "ended": "form"}
    return see_other(f"{_way_in(request)}?{urlencode(query)}")


def form_page(request: HttpRequest) -> str:
    """Return the address of the page that a form was sent from."""
    return page_before(request) or request.get_full_path()


def of_this_site(request: HttpRequest) -> bool:
    """Return whether a browser sent a request from a page of this site."""
    own = f"{request.scheme}://{request.get_host()}"
    return request.headers.get("Origin") in {own, *settings.CSRF_TRUSTED_ORIGINS}


def _way_in(request: Visit) -> str:
    if request.half_in:
        return "/login/second-factor/"
    return "/login/code/" if _awaits_code(request) else "/login/"


def _awaits_code(request: HttpRequest) -> bool:
    """Return whether the password was right, and the second factor is to be shown."""
    stage = get_pending_stage(request)
    return bool(stage and stage.key == AuthenticateStage.key)
