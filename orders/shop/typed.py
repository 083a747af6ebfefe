"""Preserve form input when a form is shown again: in another language, or with a fresh token.

It is sent with the request that shows the form, and kept nowhere. Secrets are not shown again.
"""

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import ResolverMatch, reverse
from django.utils import translation
from django.utils.translation import check_for_language
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods
from django.views.i18n import set_language

from .views.redirect import next_path, see_other

View = Callable[..., HttpResponseBase]
TYPED, PROBLEM = "shop_typed", "shop_problem"  # in a request's META; _errors.html shows the problem
SECRET = {"csrfmiddlewaretoken", "token", "password", "again", "old", "language"}
OLD = _(
    "Please check this and send it once more. Nothing was ordered or changed: you have signed in or out "
    "in another window, the page was open for long, or cookies are switched off."
)
# forms on the page of their order
OF_ORDER = {
    "order_card",
    "order_leave_out",
    "order_wait",
    "order_cancel",
    "order_return",
    "order_claim",
}
# forms that have a page at their own address
OWN_PAGE = {
    "checkout", "address", "password", "forgotten", "reset", "sign_in", "sign_up", "find",
    "order_address", "subscribe", "subscription_change",
}  # fmt: skip


def typed(request: HttpRequest) -> dict[str, str]:
    """Return the fields to fill in again; none on a first visit."""
    fields: dict[str, str] = request.META.get(TYPED, {})
    return fields


def form_page(view: View) -> View:
    """Let a view take a form, and show it as it was filled in when another language is chosen."""

    @require_http_methods(["GET", "HEAD", "POST"])
    @wraps(view)
    def page(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        language = request.POST.get("language", "")
        if not (language and check_for_language(language)):
            return view(request, *args, **kwargs)
        cookies = set_language(request).cookies
        translation.activate(language)
        response = _shown(request, view, *args, **kwargs)
        response.cookies.update(cookies)
        return response

    return page


def after_old_token(request: HttpRequest, order_page: View) -> HttpResponseBase:
    """Show a form with an expired CSRF token again, filled in (422), or redirect to its page."""
    match: ResolverMatch | None = request.resolver_match
    name = match.url_name if match and match.namespace == "shop" else ""
    if match and (name in OWN_PAGE or name in OF_ORDER):
        request.META[PROBLEM] = OLD
        view = order_page if name in OF_ORDER else match.func
        response = _shown(request, view, *match.args, **match.kwargs)
        if response.status_code == HTTPStatus.OK:
            response.status_code = HTTPStatus.UNPROCESSABLE_ENTITY
        return response
    messages.error(request, str(OLD))
    in_cart = reverse("shop:cart") if request.path.startswith("/cart/") else reverse("shop:index")
    return see_other(next_path(request) or in_cart)


def _shown(request: HttpRequest, view: View, *args: Any, **kwargs: Any) -> HttpResponseBase:
    """Return a form's page with what was typed."""
    fields = {name: str(value) for name, value in request.POST.items() if name not in SECRET}
    request.META[TYPED], request.method = fields, "GET"
    response = view(request, *args, **kwargs)
    if isinstance(response, HttpResponse) and hasattr(response, "render"):
        response.render()
    return response
