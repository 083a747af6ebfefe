"""Actions and computed steps take and return dataclasses and Structs; their schemas follow from them."""

import asyncio
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import pytest

from orchestration.agents import local
from orchestration.agents.actions import action
from orchestration.agents.base import Agent
from orchestration.agents.http import HttpAgent
from orchestration.api import Call, Step, Workflow
from orchestration.payloads import typed
from orchestration.states import Health
from tests.support.messages import request
from tests.support.sandbox import served


@dataclass(frozen=True)
class Line:
    title: str
    quantity: Annotated[int, msgspec.Meta(ge=1)]


@dataclass(frozen=True)
class Order:
    number: str
    lines: list[Line] = field(default_factory=list)


class Made(msgspec.Struct, frozen=True):
    id: str
    lines: list[Line] = []


class Circle(msgspec.Struct):
    inner: "Circle | None" = None


class Maker(Agent):
    name = "maker"

    @action
    async def make(self, call: Call, order: Order) -> Made:
        assert isinstance(order.lines[0], Line)
        return Made(id=f"{order.number}/{call.key}", lines=order.lines)

    @action(accepts={"type": "object"}, returns={"type": "object", "required": ["id"]})
    async def by_hand(self, call: Call) -> dict[str, str]:
        return {"id": call.payload["number"]}

    @action
    async def forgets(self, call: Call, order: Order) -> Made:
        Made(id=order.number)  # and does not return it

    @action
    async def mistakes(self, call: Call, order: Order) -> Made:
        return OTHERS[order.number]

    async def ask(self, call: Call) -> Made | None:
        return OTHERS.get(call.payload["number"], Made(id="asked"))


OTHERS = {
    "another field": {"number": 7},
    "another kind": Made(id=7),
    "deep inside": Made(id="7", lines=[{"title": "a", "quantity": 0}]),
    "empty": {},
    "a list": [1],
}


PAYLOAD = {"number": "1", "lines": [{"title": "a", "quantity": 2}]}


def answer(agent, **fields):
    return asyncio.run(agent.answer(request(**fields)))


def test_schemas_follow_from_the_types():
    made = Maker.actions()["make"]
    line = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "quantity": {"type": "integer", "minimum": 1}},
        "required": ["title", "quantity"],
    }
    assert made.accepts == {
        "type": "object",
        "properties": {"number": {"type": "string"}, "lines": {"type": "array", "items": line}},
        "required": ["number"],
        "additionalProperties": False,
    }
    assert made.returns["properties"]["lines"] == {"type": "array", "items": line, "default": []}
    assert Maker.actions()["by_hand"].returns == {"type": "object", "required": ["id"]}


def test_type_that_contains_itself_is_refused():
    with pytest.raises(TypeError, match="Circle contains itself"):
        typed.schema(Circle)


def test_action_gets_and_returns_values_of_its_types():
    reply = answer(Maker(), action="make", key="k", payload=PAYLOAD)
    assert (reply.outcome, reply.result) == ("done", {"id": "1/k", "lines": PAYLOAD["lines"]})
    assert answer(Maker(), action="by_hand", payload=PAYLOAD).result == {"id": "1"}


def test_forgotten_return_is_a_mistake_of_the_agent():
    reply = answer(Maker(), action="forgets", payload=PAYLOAD)
    assert reply.code == "agent_error"
    assert "forgets returned nothing, and its annotation says Made" in reply.message


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("another field", "Object missing required field `id`"),
        ("another kind", "Expected `str`, got `int` - at `$.id`"),
        ("deep inside", "`$.lines[0].quantity`"),
        ("empty", "Object missing required field `id`"),
        ("a list", "Expected `object`, got `array`"),
    ],
)
@pytest.mark.parametrize("mode", ["do", "ask"])
def test_result_of_another_type_is_a_mistake_of_the_agent(mode, number, words):
    """The call was made, so its effect may have happened."""
    reply = answer(Maker(), action="mistakes", mode=mode, payload={"number": number})
    assert (reply.outcome, reply.code) == ("unknown", "agent_error")
    what = "mistakes" if mode == "do" else "the question about mistakes"
    assert f"{what} returned no Made: " in reply.message
    assert words in reply.message


def test_result_may_have_more_than_its_type():
    OTHERS["more"] = {"id": "7", "note": "urgent"}
    reply = answer(Maker(), action="mistakes", payload={"number": "more"})
    assert (reply.outcome, reply.result) == ("done", {"id": "7", "note": "urgent"})


def test_answer_to_a_question_may_be_typed():
    assert answer(Maker(), action="make", mode="ask", payload=PAYLOAD).result["id"] == "asked"


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({}, "number"),
        ({"number": "1", "lines": [{"title": "a", "quantity": 0}]}, "lines[0].quantity"),
    ],
)
def test_request_of_another_shape_is_refused_without_a_call(payload, words):
    reply = answer(Maker(), action="make", payload=payload)
    assert (reply.outcome, reply.code) == ("rejected", "invalid_request")
    assert reply.health == Health.NOTHING
    assert words in reply.message


def price(order: Order) -> Made:
    """Compute it."""
    return Made(id=order.number, lines=order.lines)


def test_computed_step_gets_and_returns_values_of_its_types(monkeypatch):
    step = Step(name="hello", compute=price)
    monkeypatch.setitem(local.registry.workflows, "w", Workflow(name="w", steps=[step]))
    assert local.perform("w", request(payload=PAYLOAD), "me").result == {
        "id": "1",
        "lines": PAYLOAD["lines"],
    }
    wrong = local.perform("w", request(payload={"number": 1}), "me")
    assert (wrong.outcome, wrong.code) == ("rejected", "compute_failed")


def price_wrongly(order: Order) -> Made:
    """Compute something else."""
    return {"total": 3} if order.number == "1" else None


@pytest.mark.parametrize(
    ("number", "words"),
    [("1", "price_wrongly returned no Made: "), ("2", "price_wrongly returned nothing, and")],
)
def test_computed_result_of_another_type_is_refused(monkeypatch, number, words):
    step = Step(name="hello", compute=price_wrongly)
    monkeypatch.setitem(local.registry.workflows, "w", Workflow(name="w", steps=[step]))
    wrong = local.perform("w", request(payload={"number": number}), "me")
    assert (wrong.outcome, wrong.code) == ("rejected", "compute_failed")
    assert words in wrong.message


class Poster(HttpAgent):
    name = "poster"

    @action
    async def make(self, call: Call, order: Order) -> Made:
        return await self.post(call, "/bench/calls", body=order, expect=Made)

    @action
    async def other(self, call: Call) -> "Unlike":
        return await self.post(call, "/bench/calls", body=call.payload, expect=Unlike)


class Unlike(msgspec.Struct):
    weight: int


@served
async def test_answers_of_a_service_are_read_as_types(client):
    poster = Poster()
    poster.base_url = str(client.session._base_url).rstrip("/")
    made = await poster.answer(request(action="make", payload=PAYLOAD))
    other = await poster.answer(request(action="other", payload=PAYLOAD))
    await poster.close()
    assert (made.code, made.result["lines"]) == ("", [])
    assert made.result["id"]
    assert (other.outcome, other.code) == ("unknown", "unexpected_answer")
    assert "weight" in other.message
