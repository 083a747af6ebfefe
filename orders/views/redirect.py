"""Where to go after a form: never to another site."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme


def see_other(address: str) -> HttpResponse:
    """Go there by GET, whatever this request was."""
    return HttpResponseRedirect(address, status=HTTPStatus.SEE_OTHER)


def back(request: HttpRequest) -> str:
    """Return the path that the request asks to go on to, or "" if it names none of ours."""
    asked = request.POST.get("next") or request.GET.get("next") or ""
    safe = url_has_allowed_host_and_scheme(asked, allowed_hosts=None) and asked.startswith("/")
    return asked if safe else ""
