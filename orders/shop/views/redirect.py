"""Redirects after a form, never to another site."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme


def see_other(address: str) -> HttpResponse:
    """Redirect by GET (303)."""
    return HttpResponseRedirect(address, status=HTTPStatus.SEE_OTHER)


def next_path(request: HttpRequest) -> str:
    """Return the request's `next` path, or "" unless it is a local path."""
    path = request.POST.get("next") or request.GET.get("next") or ""
    safe = url_has_allowed_host_and_scheme(path, allowed_hosts=None) and path.startswith("/")
    return path if safe else ""
