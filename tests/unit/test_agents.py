"""Agents against a real partner with scripted faults: what each of them means (P2, P9, P25)."""

import asyncio
import time
from uuid import uuid4

import pytest

from orchestration.agents.base import Rejected, Transient, Unknown, action
from orchestration.agents.http import HttpAgent
from orchestration.messages import Request
from tests.unit.test_sandbox_kit import served


class Greeter(HttpAgent):
    name = "greeter"

    def __init__(self, client=None):
        super().__init__("agent-1")
        self.calls = 0
        self.base_url = (
            str(client.session._base_url).rstrip("/") if client else "http://127.0.0.1:1"
        )

    @action
    async def greet(self, call):
        self.calls += 1
        return await self.post(call, "/bench/calls", body=call.payload, expect={"id": str})

    @action
    async def fail(self, call):
        self.calls += 1
        raise {"transient": Transient, "rejected": Rejected, "unknown": Unknown}[
            call.payload["how"][min(self.calls, len(call.payload["how"])) - 1]
        ]("code", "words")

    @action
    async def hang(self, call):
        await asyncio.Event().wait()

    @action
    async def crash(self, call):
        raise KeyError("a mistake in the agent")


def request(**fields) -> Request:
    known = {
        "step": 1,
        "task": str(uuid4()),
        "name": "hello",
        "attempt": 1,
        "action": "greet",
        "key": uuid4().hex,
        "reference": "r1",
        "complete_by": time.time() + 5,
        "call_timeout": 0.3,
        "tries": 1,
        "payload": {"order": "o1"},
    }
    return Request(**{**known, **fields})


async def answered(client, *faults, agent=None, **fields):
    """Return the agent's reply and the effects the partner made, under these faults."""
    if faults:
        assert (await client.faults(*faults)).status == 200
    agent = agent or Greeter(client)
    try:
        reply = await agent.answer(request(**fields))
    finally:
        await agent.close()
    return reply, await client.entries()


FAULTS = [
    # fault, what the agent reports, its code, whether the effect happened
    ({"fault": "timeout", "seconds": 9}, "unknown", "timeout", False),
    ({"fault": "timeout_after_effect", "seconds": 9}, "unknown", "timeout", True),
    ({"fault": "status", "status": 500}, "unknown", "http_500", False),
    ({"fault": "status", "status": 502}, "unknown", "http_502", False),
    ({"fault": "status", "status": 503}, "transient", "http_503", False),
    ({"fault": "status_after_effect", "status": 500}, "unknown", "http_500", True),
    ({"fault": "too_many_requests", "retry_after": 2}, "transient", "http_429", False),
    ({"fault": "reset"}, "unknown", "connection_lost", False),
    ({"fault": "reset_after_effect"}, "unknown", "connection_lost", True),
    ({"fault": "wrong_json"}, "unknown", "unreadable_answer", True),
    ({"fault": "wrong_schema"}, "unknown", "unexpected_answer", True),
    ({"fault": "html"}, "unknown", "unreadable_answer", False),
    ({"fault": "ok_with_error"}, "unknown", "unexpected_answer", False),
    ({"fault": "drip", "seconds": 5}, "unknown", "timeout", True),
    ({"fault": "reject", "code": "no_way"}, "rejected", "no_way", False),
]


@pytest.mark.parametrize(("fault", "outcome", "code", "effect"), FAULTS)
def test_each_fault_has_its_meaning(tmp_path, fault, outcome, code, effect):
    @served
    async def run(client):
        reply, entries = await answered(client, {"partner": "bench", "action": "*", **fault})
        assert (reply.outcome, reply.code) == (outcome, code)
        assert bool([entry for entry in entries if entry["effect"] == "call"]) is effect

    run(tmp_path=tmp_path)


@pytest.mark.parametrize(("fault", "outcome", "code", "effect"), FAULTS[:-1])
def test_a_repeat_finds_out_what_happened(tmp_path, fault, outcome, code, effect):
    """Whatever the first try left open, the second one under the same key ends in one effect."""

    @served
    async def run(client):
        once = {"partner": "bench", "action": "*", "times": 1, **fault}
        reply, entries = await answered(client, once, tries=2)
        assert (reply.outcome, reply.tries) == ("done", 2)
        assert len([entry for entry in entries if entry["effect"] == "call"]) == 1

    run(tmp_path=tmp_path)


@served
async def test_it_answers_with_the_result(client):
    reply, entries = await answered(client)
    assert (reply.outcome, reply.tries, reply.by) == ("done", 1, "agent-1")
    assert reply.result["id"] == entries[0]["ref"]
    assert reply.started <= reply.ended


def test_a_service_that_cannot_be_reached_did_nothing():
    async def run():
        agent = Greeter()
        try:
            return await agent.answer(request(tries=2))
        finally:
            await agent.close()

    reply = asyncio.run(run())
    assert (reply.outcome, reply.code, reply.tries) == ("transient", "unreachable", 2)


@pytest.mark.parametrize(
    ("how", "tries", "outcome", "calls"),
    [
        (["transient", "transient"], 2, "transient", 2),
        (["unknown", "transient"], 2, "unknown", 2),  # once in doubt, always in doubt
        (["transient", "unknown"], 2, "unknown", 2),
        (["rejected"], 3, "rejected", 1),  # a refusal is not repeated
        (["unknown", "rejected"], 3, "rejected", 2),
    ],
)
def test_quick_retries(how, tries, outcome, calls):
    agent = Greeter()
    reply = asyncio.run(agent.answer(request(action="fail", tries=tries, payload={"how": how})))
    assert (reply.outcome, reply.tries, agent.calls) == (outcome, calls, calls)


def test_no_retry_that_would_not_fit_before_the_deadline():
    agent = Greeter()
    late = request(
        action="fail", tries=10, payload={"how": ["transient"]}, complete_by=time.time() + 0.5
    )
    reply = asyncio.run(agent.answer(late))
    assert reply.outcome == "transient"
    assert agent.calls < 5


@pytest.mark.parametrize("left", [0.3, 0.0, -300])
def test_past_its_deadline_it_says_nothing(left):
    started = time.monotonic()
    late = request(action="hang", complete_by=time.time() + left)
    assert asyncio.run(Greeter().answer(late)) is None
    assert time.monotonic() - started < 1


def test_its_own_mistakes_are_an_unknown_outcome():
    reply = asyncio.run(Greeter().answer(request(action="crash")))
    assert (reply.outcome, reply.code) == ("unknown", "agent_error")
    assert "a mistake in the agent" in reply.message


def test_an_action_it_does_not_have_may_come_with_the_next_deploy():
    reply = asyncio.run(Greeter().answer(request(action="answer")))
    assert (reply.outcome, reply.code) == ("transient", "no_such_action")


@pytest.mark.parametrize(
    "result", [{"at": object()}, {"n": float("nan")}, {"t": "\0"}, {"big": "x" * 300_000}]
)
def test_a_result_that_cannot_travel_is_an_unknown_outcome(result):
    class Odd(Greeter):
        @action
        async def odd(self, call):
            return result

    reply = asyncio.run(Odd().answer(request(action="odd")))
    assert (reply.outcome, reply.code) == ("unknown", "agent_error")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (401, "transient"),
        (403, "transient"),
        (404, "transient"),
        (408, "unknown"),
        (422, "rejected"),
    ],
)
def test_only_a_refusal_of_what_was_asked_is_a_rejection(status, outcome):
    reply = asyncio.run(answer_in_pieces(b"{}", status))
    assert reply.outcome == outcome


def test_an_answer_may_come_in_pieces():
    reply = asyncio.run(answer_in_pieces(b'{"id": "g1", "more": "' + b"x" * 100 + b'"}', 200))
    assert (reply.outcome, reply.result["id"]) == ("done", "g1")


async def answer_in_pieces(body, status):
    """Return the reply to an answer whose second half is sent when the first has been read."""

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(body)))
        for half in (body[: len(body) // 2], body[len(body) // 2 :]):
            writer.write(half)
            await writer.drain()
            await asyncio.sleep(0.05)  # so that they are two segments
        writer.close()
        sent.set()

    sent = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    agent = Greeter()
    agent.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        reply = await agent.answer(request())
        await sent.wait()
        return reply
    finally:
        await agent.close()
        server.close()


def test_hostile_text_is_made_printable():
    fault = Rejected("x" * 300, "\x00\x1b[31m\ud800" + "y" * 1000)
    assert len(fault.code) == 100
    assert len(fault.message) == 500
    assert fault.message.isprintable()


@served
async def test_many_calls_share_connections(client):
    agent = Greeter(client)
    try:
        for _ in range(3):
            replies = await asyncio.gather(*(agent.answer(request()) for _ in range(20)))
            assert {reply.outcome for reply in replies} == {"done"}
        connections = agent._session.connector._conns
        assert sum(len(kept) for kept in connections.values()) <= 20
    finally:
        await agent.close()
    assert len(await client.entries()) == 60


def test_a_time_out_of_the_action_itself_is_an_unknown_outcome():
    started = time.monotonic()
    reply = asyncio.run(Greeter().answer(request(action="hang", call_timeout=0.2)))
    assert (reply.outcome, reply.code) == ("unknown", "timeout")
    assert time.monotonic() - started < 2
