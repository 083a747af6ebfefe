"""How an act answers to htmx: in place, where the browser's page would otherwise be another one."""

from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django_htmx.http import reswap, retarget
from django_htmx.middleware import HtmxDetails

SLOT = "#act"  # where a page has its acts' forms opened


class _Request(HttpRequest):
    """What django-htmx's middleware makes of a request."""

    htmx: HtmxDetails


def htmx(request: HttpRequest) -> HtmxDetails:
    """Return what htmx says of a request; it is false of any other one."""
    return cast("_Request", request).htmx


def act_form(
    request: HttpRequest, page: str, part: str, context: dict[str, Any], *, sent: bool
) -> HttpResponse:
    """Return an act's form on a page of its own; to htmx the form alone, in the slot for it.

    `sent`: it was sent before, and is wrong.
    """
    in_place = bool(htmx(request))
    response = render(
        request, part if in_place else page, {**context, "in_place": in_place},
        status=422 if sent else 200,
    )  # fmt: skip
    patch_vary_headers(response, ["HX-Request"])
    return retarget(reswap(response, "innerHTML"), SLOT) if in_place else response
