"""Answers to HEAD go out without the body that the views make as for GET."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase, StreamingHttpResponse

Answer = Callable[[HttpRequest], HttpResponseBase]


def head_without_body(answer: Answer) -> Answer:
    """Take the body off each answer to HEAD, and leave its Content-Length as GET would have it.

    The web server does not send such a body either, but it warns of each: probes would fill the log.
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
