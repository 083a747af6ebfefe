"""HEAD is answered as GET, without the body: the web server warns of each body that comes along."""

import io

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.http import StreamingHttpResponse
from django.test import RequestFactory

from sasweb.bodiless import head_without_body

# a request looks at connections that earlier tests left open
pytestmark = pytest.mark.django_db


def ask(method: str, path: str = "/livez") -> tuple[str, dict[str, str], bytes]:
    """Return what a web server is given, which the test client would already have trimmed."""
    given = []
    answer = WSGIHandler()(
        RequestFactory().generic(method, path).environ,
        lambda status, headers: given.append((status, dict(headers))),
    )
    body = b"".join(answer)
    answer.close()
    return *given[0], body


def test_head_says_what_get_says_and_sends_no_body():
    status, headers, body = ask("GET")
    assert (status, body) == ("200 OK", b"alive\n")
    assert ask("HEAD") == (status, headers, b"")
    assert headers["Content-Length"] == str(len(b"alive\n"))


@pytest.mark.parametrize("path", ["/static/sas.css", "/static/none.css"])
def test_so_it_is_for_files_that_are_there_or_not(path):
    status, headers, body = ask("GET", path)
    assert body
    assert ask("HEAD", path)[::2] == (status, b"")
    assert ask("HEAD", path)[1].get("Content-Length") == headers.get(
        "Content-Length", str(len(body))
    )


def test_a_stream_is_not_begun_but_what_it_reads_is_closed():
    source = io.BytesIO(b"much")
    middleware = head_without_body(lambda _request: StreamingHttpResponse(source))
    response = middleware(RequestFactory().head("/"))
    assert b"".join(response) == b""
    response.close()
    assert source.closed
    assert (
        b"".join(
            head_without_body(lambda _: StreamingHttpResponse([b"much"]))(RequestFactory().get("/"))
        )
        == b"much"
    )
