"""The page on which people see their sessions, and end them."""

from http import HTTPStatus
from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from orders.shop.views.redirect import see_other

from . import session_list


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def sessions(request: HttpRequest) -> HttpResponse:
    """Show a user's sessions; end one of them, or all others."""
    user = cast("User", request.user)
    if request.method == "POST":
        return _end(request, user)
    rows = session_list.of(request, user)
    return render(request, "usersessions/sessions.html", {"sessions": rows})


def _end(request: HttpRequest, user: User) -> HttpResponse:
    chosen = request.POST.get("session", "")
    if chosen == "others":
        session_list.end(user, but=request)
        messages.success(request, _("All other sessions have ended."))
    elif chosen.isdecimal() and len(chosen) < 19 and session_list.end(user, id_=int(chosen)):
        messages.success(request, _("The session has ended."))
    else:
        context = {
            "sessions": session_list.of(request, user),
            "problem": _("This session has ended already."),
        }
        return render(
            request, "usersessions/sessions.html", context, status=HTTPStatus.UNPROCESSABLE_ENTITY
        )
    return see_other(reverse("usersessions_list"))
