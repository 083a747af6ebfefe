"""The contract of agents: a good agent keeps it, and each mistake is found by the test that is for it."""

import pytest
from _pytest.outcomes import Skipped

from orchestration.agents.actions import action
from orchestration.agents.base import Agent
from orchestration.agents.errors import Rejected, Transient
from orchestration.agents.http import HttpAgent
from orchestration.messaging.messages import Mode
from orchestration.testing.contract import AgentContract


class Rooms(Agent):
    """An agent whose service is a dictionary; `mistakes` are what it does wrong."""

    name = "rooms"
    mistakes = frozenset()
    answers = {}
    taken = {}

    @action(accepts={"required": ["room"]}, returns={"required": ["id"]})
    async def book(self, call):
        if call.payload["room"] == "none":
            raise (Transient if "refusal is transient" in self.mistakes else Rejected)("no_room")
        key = call.key if "key is ignored" not in self.mistakes else object()
        if key not in self.answers:
            self.answers[key] = {"id": f"b{len(self.answers)}"}
            self.taken.setdefault(call.key, []).append(self.answers[key]["id"])
        return self.answers[key] if "no result" not in self.mistakes else {}

    @action
    async def leave(self, call):
        if "undo does nothing" in self.mistakes:
            return {}
        left = self.taken.pop(call.payload["key"], None)
        if left is None and "undo fails when undone" in self.mistakes:
            raise Rejected("nothing_there")
        return {}

    async def ask(self, call):
        if "look-up acts" in self.mistakes:
            self.taken.setdefault(call.key, []).append("another")
        if "look-up forgets" in self.mistakes:
            return None
        if "look-up guesses" in self.mistakes:
            return {"id": "b1"}
        return self.answers.get(call.key)


class Contract(AgentContract):
    action, undo = "book", "leave"
    payload, refused_payload, refusal = {"room": "7"}, {"room": "none"}, "no_room"

    def __init__(self, *mistakes):
        members = {"mistakes": frozenset(mistakes), "answers": {}, "taken": {}}
        self.agent = type("Rooms", (Rooms,), members)

    def standing(self, key, result):
        return len(self.agent.taken.get(key, ()))


TESTS = {
    "test_same_key_twice_has_one_effect": {},
    "test_look_up_finds_what_was_done": {"mode": Mode.SETTLE},
    "test_look_up_of_an_unknown_key_finds_nothing": {"mode": Mode.ASK},
    "test_undo_takes_back_and_may_be_repeated": {},
    "test_undo_of_what_is_undone_is_done": {},
    "test_refusal_is_permanent_and_has_no_effect": {},
}
FAILURES = {
    "key is ignored": {"test_same_key_twice_has_one_effect", "test_look_up_finds_what_was_done"},
    "look-up acts": {"test_look_up_finds_what_was_done"},
    "look-up forgets": {"test_look_up_finds_what_was_done"},
    "look-up guesses": {
        "test_look_up_of_an_unknown_key_finds_nothing", "test_look_up_finds_what_was_done",
    },
    "undo does nothing": {
        "test_undo_takes_back_and_may_be_repeated", "test_undo_of_what_is_undone_is_done",
    },
    "undo fails when undone": {
        "test_undo_takes_back_and_may_be_repeated", "test_undo_of_what_is_undone_is_done",
    },
    "refusal is transient": {"test_refusal_is_permanent_and_has_no_effect"},
    "no result": TESTS.keys() - {
        "test_look_up_of_an_unknown_key_finds_nothing",
        "test_refusal_is_permanent_and_has_no_effect",
    },
}  # fmt: skip


def failed(*mistakes):
    """Return the tests of the contract that fail."""
    names = set()
    for name, options in TESTS.items():
        try:
            getattr(Contract(*mistakes), name)(**options)
        except AssertionError:
            names.add(name)
    return names


def test_good_agent_keeps_the_contract():
    assert failed() == set()


@pytest.mark.parametrize("mistake", FAILURES)
def test_mistake_is_found(mistake):
    assert failed(mistake) == FAILURES[mistake]


class Airline(HttpAgent):
    name = "airline"
    base_url = "http://127.0.0.1:9"

    @action
    async def hold(self, call):
        return await self.post(call, "/holds", body=call.payload)


class Careless(Airline):
    @action
    async def hold(self, call):
        try:
            return await self.post(call, "/holds", body=call.payload)
        except Exception as error:
            raise Rejected("failed") from error


@pytest.mark.parametrize(
    "name", ["test_unanswered_call_is_in_doubt", "test_unreachable_service_did_nothing"]
)
def test_classes_of_failures_of_an_http_agent(name):
    contract = AgentContract()
    contract.action, contract.payload = "hold", {"flight": "LX 1"}
    contract.agent = Airline
    getattr(contract, name)()
    contract.agent = Careless
    if "unreachable" in name:
        with pytest.raises(AssertionError):
            getattr(contract, name)()


def test_what_a_service_cannot_do_is_skipped():
    contract = AgentContract()
    contract.agent, contract.action, contract.payload = Airline, "hold", {}
    for name in ("undo_takes_back_and_may_be_repeated", "refusal_is_permanent_and_has_no_effect"):
        with pytest.raises(Skipped):
            getattr(contract, f"test_{name}")()
