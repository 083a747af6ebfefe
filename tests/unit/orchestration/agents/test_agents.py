"""Agents against a real partner with scripted faults: what each of them means (P2, P9, P25)."""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from orchestration.agents.actions import action
from orchestration.agents.errors import Later, Rejected, Transient, Unknown
from orchestration.agents.http import HttpAgent
from orchestration.agents.http_answer import LONGEST_PAUSE
from orchestration.database import clock
from tests.support.messages import nested, request
from tests.support.receiver import receiving
from tests.support.sandbox import served


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


class Asked(Greeter):
    """Can be asked what came of a key."""

    async def ask(self, call):
        assert (call.action, call.key) == ("greet", "k1")
        record = await self.get(call, "/keys/k1?partner=bench", expect={"status": str})
        if record is None:
            return None
        if record["status"] == "rejected":
            raise Rejected("refused", "permanently")
        return {"id": record["response"]["id"]}

    def knows_nothing(self, status, answer):
        return answer.get("error", {}).get("code") == "unknown_key"


async def answered(client, *faults, agent=None, **fields):
    """Return the agent's reply and the effects the partner made, under these faults."""
    if faults:
        assert (await client.faults(*faults)).status == 200
    if any(fault["fault"] in SLOW for fault in faults):
        fields.setdefault("call_timeout", 0.3)
    agent = agent or Greeter(client)
    try:
        reply = await agent.answer(request(**fields))
    finally:
        await agent.close()
    return reply, await client.entries()


SLOW = {"timeout", "timeout_after_effect", "drip"}  # only these are to end by the call's time
FAULTS = [
    # fault, what the agent reports, its code, whether the effect happened
    ({"fault": "timeout", "seconds": 9}, "unknown", "timeout", False),
    ({"fault": "timeout_after_effect", "seconds": 9}, "unknown", "timeout", True),
    ({"fault": "status", "status": 500}, "unknown", "http_500", False),
    ({"fault": "status", "status": 502}, "unknown", "http_502", False),
    ({"fault": "status", "status": 503}, "unknown", "http_503", False),
    ({"fault": "status_after_effect", "status": 503}, "unknown", "http_503", True),
    ({"fault": "status", "status": 503, "retry_after": 1}, "transient", "http_503", False),
    ({"fault": "reset_within_answer"}, "unknown", "connection_lost", True),
    ({"fault": "reject", "status": 409}, "unknown", "rejected", False),
    ({"fault": "reject", "status": 423}, "unknown", "rejected", False),
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


@served
async def test_retry_after_a_garbled_rejection_reads_the_rejection_again(client):
    """Its meaning is in its words: until they are read, the outcome is unknown."""
    spoiled = {"partner": "bench", "action": "*", "fault": "wrong_json", "times": 1}
    reply, _ = await answered(client, spoiled, payload={"order": 5})
    assert (reply.outcome, reply.code) == ("unknown", "unreadable_answer")
    reply, _ = await answered(client, spoiled, payload={"order": 5}, tries=2)
    assert (reply.outcome, reply.tries) == ("rejected", 2)


@pytest.mark.parametrize("status", [500, 503])
@served
async def test_error_message_quotes_the_service(client, status):
    fault = {"partner": "bench", "action": "*", "fault": "status", "status": status}
    reply, _ = await answered(client, fault)
    assert reply.code == f"http_{status}"
    assert reply.message
    assert "{" not in reply.message


@pytest.mark.parametrize(
    ("fault", "outcome", "code", "effect"),
    # a refusal, and a wish to be left alone, are not followed by a repeat
    [
        row
        for row in FAULTS
        if row[0]["fault"] not in {"reject", "too_many_requests"} and "retry_after" not in row[0]
    ],
)
def test_retry_under_the_same_key_learns_the_outcome(tmp_path, fault, outcome, code, effect):
    """For any end of the first try, the second one under the same key leaves one effect."""

    @served
    async def run(client):
        once = {"partner": "bench", "action": "*", "times": 1, **fault}
        reply, entries = await answered(client, once, tries=2)
        assert (reply.outcome, reply.tries) == ("done", 2)
        assert len([entry for entry in entries if entry["effect"] == "call"]) == 1

    run(tmp_path=tmp_path)


@served
async def test_reply_carries_the_result(client):
    reply, entries = await answered(client)
    assert (reply.outcome, reply.tries, reply.by) == ("done", 1, "agent-1")
    assert reply.result["id"] == entries[0]["ref"]
    assert reply.started <= reply.ended


def test_unreachable_service_leaves_no_doubt():
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


def refused(how, *, in_doubt=False, known=None):
    """Return the reply to tries that end in a refusal; `known` is what an agent that can ask hears."""

    class Asking(Greeter):
        async def ask(self, call):
            if isinstance(known, Exception):
                raise known
            return known or None

    class Knowing(Greeter):
        @action
        async def fail(self, call):
            raise Rejected("code", "words", **{how: True})

    knows = how in ("stored", "in_doubt")
    agent = Knowing() if knows else Greeter() if known is None else Asking()
    tries = ["rejected"] if knows else how
    asked = request(action="fail", tries=len(tries), payload={"how": tries}, in_doubt=in_doubt)
    return asyncio.run(agent.answer(asked))


@pytest.mark.parametrize(
    ("how", "in_doubt", "known", "outcome", "left"),
    [
        (["rejected"], False, None, "rejected", None),  # it adds no doubt
        (["rejected"], True, None, "rejected", True),  # and ends none
        (["unknown", "rejected"], False, None, "rejected", True),
        (["transient", "rejected"], False, None, "rejected", None),
        ("stored", True, None, "rejected", False),  # what the service keeps ends it
        ("in_doubt", False, None, "rejected", True),  # an earlier call shows in the refusal itself
        (["unknown", "rejected"], False, {"id": "x"}, "done", None),  # as does an answer
        (["rejected"], True, Rejected("refused"), "rejected", False),
        (["rejected"], True, False, "rejected", True),  # an earlier call may still be on its way
        (["rejected"], True, Unknown("lost"), "rejected", True),
        (["rejected"], False, {"id": "x"}, "rejected", None),  # without doubt there is no question
    ],
)  # fmt: skip
def test_rejection_alone_does_not_end_a_doubt(how, in_doubt, known, outcome, left):
    reply = refused(how, in_doubt=in_doubt, known=known)
    assert (reply.outcome, reply.in_doubt) == (outcome, left)


def test_reply_names_its_dispatch():
    reply = asyncio.run(Greeter().answer(request(action="crash", generation=3, dispatch=7)))
    assert (reply.generation, reply.dispatch) == (3, 7)


@served
async def test_credentials_are_read_for_each_call(client):
    class Renewed(Greeter):
        sent = 0

        def headers(self):
            Renewed.sent += 1
            return {"Authorization": f"Bearer {Renewed.sent}"}

    agent = Renewed(client)
    for _ in range(3):
        assert (await agent.answer(request())).outcome == "done"
    await agent.close()
    assert Renewed.sent == 3


def test_retry_that_would_miss_the_deadline_is_not_made():
    agent = Greeter()
    late = request(
        action="fail", tries=10, payload={"how": ["transient"]}, complete_by=time.time() + 0.5
    )
    reply = asyncio.run(agent.answer(late))
    assert reply.outcome == "transient"
    assert agent.calls < 5


@pytest.mark.parametrize("left", [0.3, 0.0, -300])
def test_no_reply_after_the_deadline(left):
    started = time.monotonic()
    late = request(action="hang", complete_by=time.time() + left)
    assert asyncio.run(Greeter().answer(late)) is None
    assert time.monotonic() - started < 30  # the action itself never ends


class Blocker(Greeter):
    """Its code keeps the process from all else until complete-by has passed: no timeout ends it."""

    def __init__(self, until):
        super().__init__()
        self.until = until

    async def block(self):
        while clock.now() < self.until:
            pass

    @action
    async def say(self, call):
        await self.block()
        return {"id": "g1"}

    @action
    async def fail(self, call):
        await self.block()
        raise Rejected("refused", "permanently")

    @action
    async def crash(self, call):
        await self.block()
        raise KeyError("a mistake in the agent")

    @action
    async def spoil(self, call):
        await self.block()
        return {"id": {1, 2}}  # which cannot be stored

    async def ask(self, call):
        await self.block()
        return {"id": "g1"}


class Accepting(Greeter):
    """Accepts, and knows what it accepted by its own id; it cannot be asked about keys."""

    @action
    async def accept(self, call):
        raise Later(accepted={"id": "g7"}, id="g7", look=60)

    async def look(self, call):
        return {"id": call.accepted["id"], "now": "done"}


def test_what_was_accepted_is_asked_about_by_its_own_id_and_a_call_in_doubt_is_repeated():
    def reply(**fields):
        return asyncio.run(Accepting().answer(request(action="accept", **fields)))

    assert [reply(mode=mode).wait.look for mode in ("do", "settle")] == [60, 60]
    looked = reply(mode="look", accepted={"id": "g7"})
    assert (looked.outcome, looked.result) == ("done", {"id": "g7", "now": "done"})
    forgotten = reply(mode="ask")
    assert (forgotten.outcome, forgotten.code) == ("unknown", "key_forgotten")


@pytest.mark.parametrize("mode", ["do", "settle", "ask"])
@pytest.mark.parametrize("how", ["say", "fail", "crash", "spoil"])
def test_outcome_found_after_the_deadline_is_not_replied(how, mode):
    """Not even an error: another instance may be at work on the step (P9)."""
    until = clock.now() + 0.3
    late = request(action=how, mode=mode, complete_by=until)
    assert asyncio.run(Blocker(until).answer(late)) is None
    assert asyncio.run(Blocker(until).answer(late.altered(complete_by=until + 60))) is not None


def test_exception_in_an_action_is_an_unknown_outcome():
    reply = asyncio.run(Greeter().answer(request(action="crash")))
    assert (reply.outcome, reply.code) == ("unknown", "agent_error")
    assert "a mistake in the agent" in reply.message


def test_unknown_action_is_retried_until_a_deploy():
    reply = asyncio.run(Greeter().answer(request(action="answer")))
    assert (reply.outcome, reply.code) == ("transient", "no_such_action")


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ({"at": object()}, "agent_error"),
        ({"n": float("nan")}, "result_not_stored"),
        ({"t": "\0"}, "result_not_stored"),
        ({"big": "x" * 300_000}, "result_not_stored"),
        ({"deep": nested(200)}, "result_not_stored"),
    ],
)
def test_result_that_is_not_json_is_an_unknown_outcome(result, code):
    class Odd(Greeter):
        @action
        async def odd(self, call):
            return result

    reply = asyncio.run(Odd().answer(request(action="odd")))
    assert (reply.outcome, reply.code) == ("unknown", code)


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
def test_rejection_requires_a_refusal_of_the_request_itself(status, outcome):
    reply = asyncio.run(answer_in_pieces(b"{}", f"{status} X"))
    assert reply.outcome == outcome


def test_response_may_arrive_in_chunks():
    reply = asyncio.run(answer_in_pieces(b'{"id": "g1", "more": "' + b"x" * 100 + b'"}', "200 X"))
    assert (reply.outcome, reply.result["id"]) == ("done", "g1")


async def answer_in_pieces(body, head, agent=Greeter, **fields):
    """Return the reply to an answer whose second half is sent when the first has been read.

    `head` is the status, a word, and further headers on lines of their own.
    """

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        lines = f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(lines.encode())
        for half in (body[: len(body) // 2], body[len(body) // 2 :]):
            writer.write(half)
            await writer.drain()
            await asyncio.sleep(0.05)  # so that they are two segments
        writer.close()
        sent.set()

    sent = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    agent = agent()
    agent.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        reply = await agent.answer(request(**fields))
        await sent.wait()
        return reply
    finally:
        await agent.close()
        server.close()


def test_control_characters_are_made_printable():
    fault = Rejected("x" * 300, "\x00\x1b[31m\ud800" + "y" * 1000)
    assert len(fault.code) == 100
    assert len(fault.message) == 500
    assert fault.message.isprintable()


@served
async def test_calls_share_connections(client):
    agent = Greeter(client)
    try:
        for _ in range(3):
            replies = await asyncio.gather(*(agent.answer(request()) for _ in range(20)))
            assert {reply.outcome for reply in replies} == {"done"}
        connections = agent._session.connector._conns
        assert sum(len(idle) for idle in connections.values()) <= 20
    finally:
        await agent.close()
    assert len(await client.entries()) == 60


def test_timeout_inside_an_action_is_an_unknown_outcome():
    started = time.monotonic()
    reply = asyncio.run(Greeter().answer(request(action="hang", call_timeout=0.2)))
    assert (reply.outcome, reply.code) == ("unknown", "timeout")
    assert time.monotonic() - started < 30  # the action itself never ends


# --- learning what came of a call: settle and ask


@pytest.mark.parametrize("mode", ["settle", "ask"])
@served
async def test_lookup_of_a_done_request_returns_its_result(client, mode):
    made = await client.made("/bench/calls", {"order": "o1"}, "k1")
    reply, entries = await answered(client, agent=Asked(client), mode=mode, key="k1")
    assert (reply.outcome, reply.result) == ("done", {"id": made})
    assert [entry["requests"] for entry in entries] == [1]  # asked, not repeated


@pytest.mark.parametrize("mode", ["settle", "ask"])
@served
async def test_lookup_of_an_unknown_key_reports_no_effect(client, mode):
    reply, entries = await answered(client, agent=Asked(client), mode=mode, key="k1")
    assert (reply.outcome, reply.result, entries) == ("absent", {}, [])


@served
async def test_lookup_of_a_rejected_request_reports_the_rejection(client):
    await client.faults({"partner": "bench", "action": "call", "fault": "reject", "times": 1})
    await client.post("/bench/calls", {"order": "o1"}, "k1")
    reply, _ = await answered(client, agent=Asked(client), mode="settle", key="k1")
    assert (reply.outcome, reply.code) == ("rejected", "refused")


@pytest.mark.parametrize(
    ("fault", "outcome", "code"),
    [
        ({"fault": "timeout", "seconds": 9}, "unknown", "timeout"),
        ({"fault": "status", "status": 500}, "unknown", "http_500"),
        ({"fault": "status", "status": 503}, "unknown", "http_503"),
        ({"fault": "reject", "status": 422, "code": "no_way"}, "unknown", "no_way"),
        ({"fault": "html"}, "unknown", "unreadable_answer"),
        ({"fault": "wrong_schema"}, "unknown", "unexpected_answer"),
        ({"fault": "reset"}, "unknown", "connection_lost"),
    ],
)
def test_ambiguous_lookup_leaves_the_doubt(tmp_path, fault, outcome, code):
    @served
    async def run(client):
        await client.made("/bench/calls", {"order": "o1"}, "k1")
        fault_of_reads = {"partner": "bench", "action": "read", **fault}
        reply, entries = await answered(
            client, fault_of_reads, agent=Asked(client), mode="ask", key="k1"
        )
        assert (reply.outcome, reply.code) == (outcome, code)
        assert [entry["requests"] for entry in entries] == [1]

    run(tmp_path=tmp_path)


def test_lookup_may_be_repeated_within_the_attempt(tmp_path):
    @served
    async def run(client):
        await client.made("/bench/calls", {"order": "o1"}, "k1")
        once = {"partner": "bench", "action": "read", "fault": "status", "times": 1}
        reply, _ = await answered(
            client, once, agent=Asked(client), mode="settle", key="k1", tries=2
        )
        assert (reply.outcome, reply.tries) == ("done", 2)

    run(tmp_path=tmp_path)


def test_lookup_with_a_bare_404_is_not_an_answer():
    reply = asyncio.run(answer_in_pieces(b"{}", "404 X", Asked, mode="ask", key="k1"))
    assert (reply.outcome, reply.code) == ("transient", "http_404")


@served
async def test_service_without_lookup_is_sent_the_same_request_again(client):
    made = await client.made("/bench/calls", {"order": "o1"}, "k1")
    reply, entries = await answered(client, mode="settle", key="k1")
    assert (reply.outcome, reply.result["id"]) == ("done", made)
    assert [entry["requests"] for entry in entries] == [2]


@served
async def test_call_is_not_repeated_once_its_key_is_forgotten(client):
    reply, entries = await answered(client, mode="ask")
    assert (reply.outcome, reply.code, reply.tries) == ("unknown", "key_forgotten", 0)
    assert "Check with the service" in reply.message
    assert entries == []


# --- being asked to wait


@pytest.mark.parametrize("status", [425, 429, 503])
def test_retry_after_ends_the_attempt_at_once(status):
    head = f"{status} X\r\nRetry-After: 7"
    reply = asyncio.run(answer_in_pieces(b"{}", head, tries=3))
    assert (reply.outcome, reply.retry_after, reply.tries) == ("transient", 7.0, 1)


def date(seconds):
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        ("0", 0, 0),
        ("120", 120, 120),
        ("9" * 400, LONGEST_PAUSE, LONGEST_PAUSE),
        (300, 200, 301),  # a date: this number of seconds from now
        (-300, 0, 0),
        # by the service's own clock, which is years behind this one; all three forms of a date
        ("Sun, 06 Nov 1994 08:50:37 GMT\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT", 60, 60),
        ("Sunday, 06-Nov-94 08:50:37 GMT\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT", 60, 60),
        ("Sun Nov  6 08:50:37 1994\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT", 60, 60),
    ],
)
def test_retry_after_is_seconds_or_a_date(asked, least, most):
    if isinstance(asked, int):
        asked = date(asked)
    reply = asyncio.run(answer_in_pieces(b"{}", f"503 X\r\nRetry-After: {asked}"))
    assert least <= reply.retry_after <= most


@pytest.mark.parametrize("asked", ["", "soon", "-5", "1.5", "٣", "99 Foo 9999 99:99:99"])
def test_retry_after_that_is_malformed_is_ignored(asked):
    reply = asyncio.run(answer_in_pieces(b"{}", f"429 X\r\nRetry-After: {asked}"))
    assert (reply.outcome, reply.retry_after) == ("transient", None)


def test_retry_after_with_another_failure_is_ignored():
    reply = asyncio.run(answer_in_pieces(b"{}", "500 X\r\nRetry-After: 7"))
    assert (reply.outcome, reply.retry_after) == ("unknown", None)


@served
async def test_retry_after_does_not_end_a_doubt(client):
    first = {"partner": "bench", "action": "call", "fault": "reset_after_effect", "times": 1}
    second = {"partner": "bench", "action": "call", "fault": "too_many_requests", "retry_after": 3}
    reply, _ = await answered(client, first, second, tries=5)
    assert (reply.outcome, reply.code, reply.tries) == ("unknown", "connection_lost", 2)
    assert reply.retry_after == 3


# --- the shapes of what actions take and give


def test_action_declares_input_and_result_schemas():
    class Shaped(Greeter):
        @action(accepts={"type": "object"}, returns={"type": "null"})
        async def shaped(self, call):
            """Has schemas."""

    shaped, plain = Shaped.actions()["shaped"], Shaped.actions()["greet"]
    assert (shaped.accepts, shaped.returns) == ({"type": "object"}, {"type": "null"})
    assert (plain.accepts, plain.returns) == (None, None)
    assert asyncio.run(Shaped().answer(request(action="shaped"))).outcome == "done"


@dataclass
class Stamped:
    """What a service returns."""

    id: str


class Janitor(HttpAgent):
    name = "janitor"

    @action
    async def remove(self, call):
        return await self.post(call, "/", body={})

    @action
    async def expect(self, call):
        return await self.post(call, "/", body={}, expect={"id": str})

    @action
    async def expect_type(self, call):
        return await self.post(call, "/", body={}, expect=Stamped)


@pytest.mark.parametrize(
    ("act", "status", "outcome"),
    [
        ("remove", 204, "done"),
        ("remove", 205, "done"),
        ("remove", 200, "unknown"),  # its body may be lost
        ("remove", 202, "unknown"),
        ("expect", 204, "unknown"),
        ("expect_type", 204, "unknown"),
    ],
)
def test_answer_without_content_is_done_where_none_is_expected(act, status, outcome):
    async def perform(port):
        janitor = Janitor()
        janitor.base_url = f"http://127.0.0.1:{port}"
        try:
            return await janitor.answer(request(action=act))
        finally:
            await janitor.close()

    with receiving() as service:
        service.answers = [status]
        reply = asyncio.run(perform(service.port))
    assert (reply.outcome, reply.result) == (outcome, {})
