"""Middleware that removes the body of responses to HEAD."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase, StreamingHttpResponse

Answer = Callable[[HttpRequest], HttpResponseBase]


def head_without_body(answer: Answer) -> Answer:
    """Remove the body of each response to HEAD, and keep the Content-Length of GET.

    The web server drops such a body anyway, but logs a warning for each probe.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = answer(request)
        if request.method == "HEAD":
            if isinstance(response, StreamingHttpResponse):
                response.streaming_content = []  # what it read from is closed with it all the same
            elif isinstance(response, HttpResponse):
                response.headers.setdefault("Content-Length", str(len(response.content)))
                response.content = b""
        return response

    return middleware
