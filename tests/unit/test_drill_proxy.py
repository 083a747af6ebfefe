"""The drill's proxy: what it spoils, and what it leaves alone."""

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
        self.heard = []
        super().__init__(str(path), Handler)


class Handler(socketserver.StreamRequestHandler):
    """Answers each line with ":ok", and remembers it."""

    def handle(self):
        while line := self.rfile.readline():
            self.server.heard.append(line)
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
    """Send; return the answer, empty when the connection is cut."""
    try:
        client.sendall(text)
        return client.recv(100)
    except ConnectionError:
        return b""


def spoiled(tmp_path, **given):
    return behind(tmp_path / "socket", tmp_path / "moved", Spoil(**given))


def test_without_a_spoil_it_only_passes_on(tmp_path, server, connect):
    with spoiled(tmp_path) as spoil:
        assert ask(connect(), b"one\n") == b":ok\r\n"
    assert server.heard == [b"one\n"]
    assert spoil.struck == 0


def test_cut_before_reaches_nobody(tmp_path, server, connect):
    with spoiled(tmp_path, act="cut_before", every=2):
        client = connect()
        assert ask(client, b"one\n") == b":ok\r\n"
        assert ask(client, b"two\n") == b""
    assert server.heard == [b"one\n"]


def test_cut_after_is_done_and_not_answered(tmp_path, server, connect):
    with spoiled(tmp_path, act="cut_after", chosen=lambda message: message == b"two\n"):
        client = connect()
        assert ask(client, b"one\n") == b":ok\r\n"
        assert ask(client, b"two\n") == b""
        assert ask(connect(), b"three\n") == b":ok\r\n"
    assert server.heard == [b"one\n", b"two\n", b"three\n"]


def test_repeat_delivers_again_and_answers_once(tmp_path, server, connect):
    with spoiled(tmp_path, act="repeat", times=3):
        client = connect()
        assert ask(client, b"one\n") == b":ok\r\n"
        wait_for(lambda: server.heard == [b"one\n"] * 3, "it is delivered three times")


def test_a_black_hole_takes_all_and_says_nothing(tmp_path, server, connect):
    with spoiled(tmp_path, swallow=True):
        client = connect()
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            ask(client, b"one\n")
    assert server.heard == []


def test_afterwards_the_server_has_its_name_back(tmp_path, server, connect):
    with spoiled(tmp_path, act="cut_before"):
        pass
    assert ask(connect(), b"one\n") == b":ok\r\n"


def test_it_tells_messages_apart():
    assert is_commit(b"Q\x00\x00\x00\x0bCOMMIT\x00")
    assert not is_commit(b"Q\x00\x00\x00\x0dSELECT 1\x00")
    assert is_push(b"*3\r\n$5\r\nRPUSH\r\n$9\r\nsas:inbox\r\n$1\r\nx\r\n")
    assert not is_push(b"*3\r\n$5\r\nRPUSH\r\n$5\r\nother\r\n$1\r\nx\r\n")
    assert not is_push(b"*2\r\n$4\r\nLPOP\r\n$9\r\nsas:inbox\r\n")


def test_it_reads_one_command_of_several():
    first, second = b"*1\r\n$4\r\nPING\r\n", b"*2\r\n$3\r\nGET\r\n$4\r\n\r\n\r\n\r\n"

    async def read():
        reader = asyncio.StreamReader()
        reader.feed_data(first + second)
        return [await redis_command(reader), await redis_command(reader)]

    assert asyncio.run(read()) == [first, second]
