"""Pages for what Django refuses without one: a method that an address does not take, a stale form."""

from collections.abc import Callable
from http import HTTPStatus

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import Resolver404, resolve

from orders.shop.typed import after_old_token
from orders.shop.views import order as order_page
from orders.shop.views.errors import error_page
from orders.shop.views.redirect import see_other

from .staff import door

NO_PAGES = ("/api/", "/metrics")  # whose callers are programs
OLD = "Nothing was changed: the page was open for long, or you have logged in again in another tab."


def explain_method(
    answer: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: say what to do where a form's address is opened like a page's."""

    def explained(request: HttpRequest) -> HttpResponseBase:
        response = answer(request)
        if response.status_code != HTTPStatus.METHOD_NOT_ALLOWED or not _by_a_person(request):
            return response
        page = error_page(request, HTTPStatus.METHOD_NOT_ALLOWED, above=_page_above(request.path))
        page["Allow"] = response.headers.get("Allow", "POST")
        return page

    return explained


def _by_a_person(request: HttpRequest) -> bool:
    return (
        request.method in {"GET", "HEAD"}
        and not request.path.startswith(NO_PAGES)
        and "HX-Request" not in request.headers
    )


def _page_above(path: str) -> str:
    """Return the nearest address above one that leads to a view: /ops/tasks/ for /ops/tasks/1/x/."""
    parts = path.strip("/").split("/")
    for length in range(len(parts) - 1, 0, -1):
        above = f"/{'/'.join(parts[:length])}/"
        try:
            resolve(above)
        except Resolver404:
            continue
        return above
    return "/"


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponseBase:  # noqa: ARG001
    """Answer a form without a good CSRF token; what was typed is shown again, in a fresh form.

    After a login in another tab the token in this one is old. Htmx keeps the form, and offers to send it
    as a browser does.
    """
    if request.path.startswith(door.PAGES):
        if "HX-Request" in request.headers:
            return HttpResponse(status=HTTPStatus.UNAUTHORIZED)
        if door.of_this_site(request):
            messages.warning(request, OLD, extra_tags="ended")
            return see_other(door.form_page(request))
    elif "HX-Request" not in request.headers and door.of_this_site(request):
        return after_old_token(request, order_page.order)
    return error_page(request, HTTPStatus.FORBIDDEN, "403_csrf")
