"""What a failed attempt brings along: the traceback, and what the service answered."""

import json
import sys

import pytest
from msgspec import UNSET

from orchestration.agents import local
from orchestration.agents.actions import action
from orchestration.agents.errors import Rejected
from orchestration.agents.evidence import Heard, evidence, hear
from orchestration.agents.http import HttpAgent
from orchestration.messaging.messages import MAX_ANSWER, MAX_TRACEBACK, Reply
from orchestration.payloads.secrets import HIDDEN
from orchestration.workflows.step import Step
from orchestration.workflows.workflow import Workflow
from tests.support.messages import request
from tests.support.sandbox import served

KEY = "the-key-of-this-agent"
REFUSES = {"partner": "bench", "action": "*", "fault": "reject", "code": "no_way"}


class Trusting(HttpAgent):
    """Expects more of an answer than there is, and has a credential."""

    name = "trusting"

    def __init__(self, client):
        super().__init__("agent-1")
        self.base_url = str(client.session._base_url).rstrip("/")

    def headers(self):
        return {"Authorization": f"Bearer {KEY}", "Accept": "application/json"}

    @action
    async def greet(self, call):
        answer = await self.post(call, "/bench/calls", body=call.payload)
        return {"id": answer["id"]}

    @action
    async def trip(self, call):
        answer = await self.post(call, "/bench/calls", body=call.payload)
        raise ValueError(f"{KEY} {answer['no such field']}")

    @action
    async def fall(self, call):
        raise ValueError(f"with {KEY}")


async def failed(agent, **fields) -> Reply:
    """Return the reply to a request, as it arrives."""
    try:
        return Reply.parse((await agent.answer(request(**fields))).dump())
    finally:
        await agent.close()


@served
async def test_success_has_no_evidence(client):
    reply = await failed(Trusting(client))
    assert (reply.outcome, reply.evidence) == ("done", UNSET)


@served
async def test_refusal_brings_the_answer(client):
    await client.faults(REFUSES)
    reply = await failed(Trusting(client))
    assert (reply.outcome, reply.code) == ("rejected", "no_way")
    assert reply.evidence.traceback == ""
    assert 400 <= reply.evidence.status < 500
    assert json.loads(reply.evidence.answer)["error"]["code"] == "no_way"


@served
async def test_error_in_the_agents_code_brings_its_traceback_and_the_answer(client):
    reply = await failed(Trusting(client), action="trip")
    assert reply.code == "agent_error"
    shown = reply.evidence
    assert "in trip" in shown.traceback
    assert shown.traceback.splitlines()[-1] == "KeyError: 'no such field'"
    assert "id" in json.loads(shown.answer)
    assert shown.status == 201


@served
async def test_credentials_are_hidden(client):
    reply = await failed(Trusting(client), action="fall")
    assert reply.evidence.traceback.endswith(f"ValueError: with {HIDDEN}")
    assert KEY not in reply.evidence.traceback


@served
async def test_agent_that_cannot_name_its_credentials_keeps_nothing(client):
    agent = Trusting(client)
    agent.headers = None
    reply = await failed(agent, action="fall")
    assert (reply.code, reply.evidence) == ("agent_error", UNSET)


def deeper(levels):
    if levels:
        deeper(levels - 1)
    raise ValueError("x" * 100_000)


def raised(function, *arguments):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        function(*arguments)
    return caught.value


@pytest.mark.parametrize("levels", [0, sys.getrecursionlimit() // 2])
def test_traceback_is_bounded_and_keeps_the_last_frames(levels):
    shown = evidence(None, raised(deeper, levels)).traceback
    assert len(shown.encode()) <= MAX_TRACEBACK
    assert "in deeper" in shown
    assert "ValueError: xxx" in shown.splitlines()[-1]


def test_traceback_with_many_causes_ends_with_the_last():
    error = KeyError("last")
    inner = error
    for _ in range(30):
        inner.__cause__ = ValueError("é" * 900)
        inner = inner.__cause__
    shown = evidence(None, error).traceback
    assert MAX_TRACEBACK - 3_000 < len(shown.encode()) <= MAX_TRACEBACK
    assert shown.endswith("KeyError: 'last'")


def heard(raw, status=500):
    fault = Rejected("code")
    hear(fault, [Heard(status, raw)])
    return evidence(fault, None)


@pytest.mark.parametrize(
    ("raw", "answer", "cut"),
    [
        (b"", "", False),
        (b"<h1>no\0</h1>", "<h1>no </h1>", False),
        (b'{"a":"\\u00e9"}', '{"a": "é"}', False),  # words are found as people write them
        (b'{"token":"t"}', f'{{"token": "{HIDDEN}"}}', False),
        ("é".encode() * MAX_ANSWER, "é" * (MAX_ANSWER // 2), True),
        (b"x" * 1_000_000, "x" * MAX_ANSWER, True),
        (b"[" * 60_000, "[" * MAX_ANSWER, True),
        (b"\xff", "\ufffd", False),
    ],
)
def test_answer_is_bounded_and_can_be_stored(raw, answer, cut):
    shown = heard(raw)
    assert (shown.answer, shown.cut) == (answer, cut)


def test_computed_step_brings_its_traceback(monkeypatch):
    def compute(_request):
        raise KeyError("missing")

    declared = Workflow(name="sum", steps=[Step(name="hello", compute=compute)])
    monkeypatch.setitem(local.registry.workflows, "sum", declared)
    reply = local.perform("sum", request(), "scheduler-1")
    assert reply.code == local.FAILED
    assert "in compute" in reply.evidence.traceback
    assert Reply.parse(reply.dump()) == reply
