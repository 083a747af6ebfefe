"""Doubles refuse what the engine would refuse: requests and results of other types than declared."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal

import pytest

from orchestration import registry
from orchestration.agents.actions import Call, action, perform
from orchestration.agents.base import Agent
from orchestration.agents.errors import Rejected
from orchestration.testing.doubles import Script, double
from orchestration.testing.outcomes import done


@dataclass
class Booking:
    name: str


@dataclass
class Room:
    number: str


@dataclass
class Confirmation:
    id: str
    nights: int
    room: Room
    board: Literal["none", "half"]
    guests: int | None
    extras: list[str] = field(default_factory=list)
    tax: float | None = None


MADE_UP = {
    "id": "book-1",
    "nights": 1,
    "room": {"number": "book-1"},
    "board": "half",
    "guests": 1,
    "extras": [],
    "tax": None,
}


class Rooms(Agent):
    name = "rooms"

    @action
    async def book(self, call: Call, booking: Booking) -> Confirmation:
        """Book it."""


@pytest.fixture
def script(monkeypatch):
    monkeypatch.setitem(registry.agents, "rooms", Rooms)
    return Script()


def booked(script, **payload):
    call = Call(action="book", key="k", reference="r", payload=payload, timeout=1.0)
    agent = double(Rooms, script)
    return asyncio.run(perform(agent.actions()["book"], agent, call))


def test_request_of_another_type_is_refused(script):
    with pytest.raises(Rejected, match="the request is not what book takes") as refused:
        booked(script, name=7)
    assert refused.value.code == "invalid_request"
    assert booked(script, name="Ada") == MADE_UP


def test_part_of_a_result_is_completed(script):
    script.set("rooms.book", [done(id="b7")], None)
    assert booked(script, name="Ada") == MADE_UP | {"id": "b7"}


def test_result_that_the_action_cannot_return_is_refused_at_once(script):
    with pytest.raises(ValueError, match=r"rooms.book cannot return .*'ident' was unexpected"):
        script.set("rooms.book", [done(ident="b7")], None)
    with pytest.raises(ValueError, match=r"id: must be text, not 7"):
        script.set("rooms.book", [done(id=7)], None)


def test_result_of_a_function_is_refused_when_it_is_called(script):
    script.set("rooms.book", [lambda _call: {"id": "b7"}], None)
    with pytest.raises(ValueError, match="'nights' is missing"):
        booked(script, name="Ada")
