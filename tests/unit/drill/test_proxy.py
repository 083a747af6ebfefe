"""The drill's proxy."""

import asyncio
import socket
import socketserver
import threading

import pytest

from drill.proxy import Spoil, behind, is_commit, is_push, redis_command
from drill.waiting import wait_for


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path):
        self.received = []
        super().__init__(str(path), Handler)


class Handler(socketserver.StreamRequestHandler):
    """Answers each line with ":ok" and records it."""

    def handle(self):
        while line := self.rfile.readline():
            self.server.received.append(line)
            self.wfile.write(b":ok\r\n")


@pytest.fixture
def server(tmp_path):
    with Server(tmp_path / "socket") as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving
        serving.shutdown()


@pytest.fixture
def connect(tmp_path):
    opened = []

    def connect():
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(5)
        client.connect(str(tmp_path / "socket"))
        opened.append(client)
        return client

    yield connect
    for client in opened:
        client.close()


def ask(client, text):
    """Send `text`; return the answer, empty if the connection is cut."""
    try:
        client.sendall(text)
        return client.recv(100)
    except ConnectionError:
        return b""


def spoiled(tmp_path, **faults):
    return behind(tmp_path / "socket", tmp_path / "moved", Spoil(**faults))


def test_proxy_without_fault_forwards(tmp_path, server, connect):
    with spoiled(tmp_path) as spoil:
        assert ask(connect(), b"one\n") == b":ok\r\n"
    assert server.received == [b"one\n"]
    assert spoil.struck == 0


def test_cut_before_never_reaches_server(tmp_path, server, connect):
    with spoiled(tmp_path, act="cut_before", every=2):
        client = connect()
        assert ask(client, b"one\n") == b":ok\r\n"
        assert ask(client, b"two\n") == b""
    assert server.received == [b"one\n"]


def test_cut_after_loses_answer(tmp_path, server, connect):
    with spoiled(tmp_path, act="cut_after", chosen=lambda message: message == b"two\n"):
        client = connect()
        assert ask(client, b"one\n") == b":ok\r\n"
        assert ask(client, b"two\n") == b""
        assert ask(connect(), b"three\n") == b":ok\r\n"
    assert server.received == [b"one\n", b"two\n", b"three\n"]


def test_repeat_delivers_again_and_answers_once(tmp_path, server, connect):
    with spoiled(tmp_path, act="repeat", times=3):
        client = connect()
        assert ask(client, b"one\n") == b":ok\r\n"
        wait_for(lambda: server.received == [b"one\n"] * 3, "it is delivered three times")


def test_swallow_discards_without_error(tmp_path, server, connect):
    with spoiled(tmp_path, swallow=True):
        client = connect()
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            ask(client, b"one\n")
    assert server.received == []


def test_proxy_end_restores_socket(tmp_path, server, connect):
    with spoiled(tmp_path, act="cut_before"):
        pass
    assert ask(connect(), b"one\n") == b":ok\r\n"


def test_commit_and_push_recognized():
    assert is_commit(b"Q\x00\x00\x00\x0bCOMMIT\x00")
    assert not is_commit(b"Q\x00\x00\x00\x0dSELECT 1\x00")
    assert is_push(b"*3\r\n$5\r\nRPUSH\r\n$9\r\nsas:inbox\r\n$1\r\nx\r\n")
    assert not is_push(b"*3\r\n$5\r\nRPUSH\r\n$5\r\nother\r\n$1\r\nx\r\n")
    assert not is_push(b"*2\r\n$4\r\nLPOP\r\n$9\r\nsas:inbox\r\n")


def test_redis_command_read_one_of_several():
    first, second = b"*1\r\n$4\r\nPING\r\n", b"*2\r\n$3\r\nGET\r\n$4\r\n\r\n\r\n\r\n"

    async def read():
        reader = asyncio.StreamReader()
        reader.feed_data(first + second)
        return [await redis_command(reader), await redis_command(reader)]

    assert asyncio.run(read()) == [first, second]
