"""A webhook receiver: an HTTP server that records the requests."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Receiver:
    """The requests received, and the statuses to answer with; the last one repeats."""

    port: int = 0
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answers: list[int] = field(default_factory=lambda: [204])
    body: bytes = b""
    meanwhile: Callable[[], object] = lambda: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["Content-Length"])
            headers = {name.lower(): value for name, value in self.headers.items()}
            headers[":path"] = self.path
            receiver.got.append((headers, self.rfile.read(length)))
            receiver.meanwhile()
            answers = receiver.answers
            self.send_response(answers.pop(0) if len(answers) > 1 else answers[0])
            self.send_header("Location", receiver.url)
            self.send_header("Content-Length", str(len(receiver.body)))
            self.end_headers()
            self.wfile.write(receiver.body)

        def do_GET(self):
            receiver.got.append(({}, b""))
            self.send_error(404)

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 200  # many may come at once

    server = Server(("127.0.0.1", 0), Handler)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
