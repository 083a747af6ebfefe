"""HEAD is answered as GET without the body; the web server would warn of a body."""

import io

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.http import StreamingHttpResponse
from django.test import RequestFactory

from sasweb.bodiless import head_without_body

# a request checks connections that earlier tests left open
pytestmark = pytest.mark.django_db


def ask(method: str, path: str = "/livez") -> tuple[str, dict[str, str], bytes]:
    """Return the status, headers and body that a web server gets; the test client drops the body."""
    started = []
    answer = WSGIHandler()(
        RequestFactory().generic(method, path).environ,
        lambda status, headers: started.append((status, dict(headers))),
    )
    body = b"".join(answer)
    answer.close()
    return *started[0], body


def test_head_has_the_headers_of_get_and_no_body():
    status, headers, body = ask("GET")
    assert (status, body) == ("200 OK", b"alive\n")
    assert ask("HEAD") == (status, headers, b"")
    assert headers["Content-Length"] == str(len(b"alive\n"))


@pytest.mark.parametrize("path", ["/static/sas.css", "/static/none.css"])
def test_head_of_a_static_file(path):
    status, headers, body = ask("GET", path)
    assert body
    assert ask("HEAD", path)[::2] == (status, b"")
    assert ask("HEAD", path)[1].get("Content-Length") == headers.get(
        "Content-Length", str(len(body))
    )


def test_stream_of_a_head_is_closed_without_being_read():
    source = io.BytesIO(b"much")
    middleware = head_without_body(lambda _request: StreamingHttpResponse(source))
    response = middleware(RequestFactory().head("/"))
    assert b"".join(response) == b""
    response.close()
    assert source.closed
    answer = head_without_body(lambda _: StreamingHttpResponse([b"much"]))
    assert b"".join(answer(RequestFactory().get("/"))) == b"much"
