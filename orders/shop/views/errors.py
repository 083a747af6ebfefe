"""Error pages: they state what happened to the order, or what to do in the dashboard."""

import logging
import sys
from http import HTTPStatus
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext_lazy as _

from orders.api.problems import Problem, may_pass

logger = logging.getLogger(__name__)
RETRY_AFTER = 30  # seconds
STAFF = ("/ops/", "/admin/", "/login/")  # the addresses whose pages have the dashboard's dress

NOTHING_ORDERED = _("Nothing was ordered and nothing was charged.")
PERHAPS_ORDERED = _(
    "We cannot tell at the moment whether your order reached us. Send it again: the same order is "
    "never placed twice."
)


def may_be_ordered(request: HttpRequest) -> None:
    """Mark that the order may exist from now on, even if the request fails."""
    request.META["shop.may_be_ordered"] = True


def may_be_repeated(request: HttpRequest) -> None:
    """Mark that the error page may offer to send this form again."""
    request.META["shop.may_be_repeated"] = True


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """Answer a suspicious request; below /api/ with a problem."""
    if not request.path.startswith("/api/"):
        text = render_to_string(f"{folder(request)}400.html")
        return HttpResponse(text, status=HTTPStatus.BAD_REQUEST)
    return Problem(
        status=HTTPStatus.BAD_REQUEST,
        code="bad_request",
        detail="The request is malformed or not for this host.",
    ).answer()


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """Answer a request for which the user lacks the permission."""
    return error_page(request, HTTPStatus.FORBIDDEN)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """Answer an unknown address or object with the page of the shop, or of the dashboard."""
    return error_page(request, HTTPStatus.NOT_FOUND)


def error_page(
    request: HttpRequest, status: HTTPStatus, name: str = "", **context: str
) -> HttpResponse:
    """Return the page of a status in the dress of its address, with a link to the page before."""
    context = {"back": page_before(request), **context}
    template = f"{folder(request)}{name or status.value}.html"
    return render(request, template, context, status=status)


def page_before(request: HttpRequest) -> str:
    """Return the local address of the page that led to this request, or ""."""
    before = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(before, {request.get_host()}):
        return ""
    parts = urlsplit(before)
    address = parts.path + (f"?{parts.query}" if parts.query else "")
    return "" if address == request.get_full_path() or parts.path.startswith("//") else address


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer an exception with 503 if a retry may succeed, otherwise 500. Uses no database."""
    error = sys.exc_info()[1]
    away = isinstance(error, Exception) and may_pass(error)
    perhaps = request.META.get("shop.may_be_ordered", False)
    text = render_to_string(
        f"{folder(request)}{503 if away else 500}.html",
        {
            "safe": request.method in {"GET", "HEAD"},
            "ordered": PERHAPS_ORDERED if perhaps else NOTHING_ORDERED,
            "path": request.get_full_path(),
            "fields": _fields(request),
        },
    )
    if not away:
        return HttpResponse(text, status=500)
    logger.error("%s %s: the database is away: %s", request.method, request.path, error)
    connection.close()
    return HttpResponse(text, status=503, headers={"Retry-After": str(RETRY_AFTER)})


def folder(request: HttpRequest) -> str:
    """Return the folder of the error pages; a web process for the shop alone has no dashboard."""
    return "ops/" if settings.FOR_STAFF and request.path.startswith(STAFF) else ""


def _fields(request: HttpRequest) -> list[tuple[str, str]]:
    """Return the form's fields, CSRF token included, if it may be sent again."""
    repeats = request.META.get("shop.may_be_repeated", False)
    return [(name, str(value)) for name, value in request.POST.items()] if repeats else []
