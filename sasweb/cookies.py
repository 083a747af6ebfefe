"""Middleware that drops cookies which no code of this project has set."""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

Answer = Callable[[HttpRequest], HttpResponseBase]


def storable_cookies(answer: Answer) -> Answer:
    r"""Drop cookies with a NUL, written as \000: a session of that name cannot be looked for.

    A request without them is answered; if it were refused, its browser would not get in again.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if any("\0" in value for value in request.COOKIES.values()):
            request.COOKIES = {
                name: value for name, value in request.COOKIES.items() if "\0" not in value
            }
        return answer(request)

    return middleware
