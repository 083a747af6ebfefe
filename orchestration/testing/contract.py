"""The contract that an agent keeps with its service, as tests that its author runs.

Inherit `AgentContract` in a class `Test…` for an action, against the service's test mode or a fake of it:

    class TestSeat(AgentContract):
        agent = Airline
        action = "hold"
        payload = {"flight": "LX 1"}
        undo = "release"
        refused_payload = {"flight": "none"}
        refusal = "unknown_flight"

        def undo_payload(self, key, result):
            return {"hold": result["id"]}

        def standing(self, key, result):
            return len(my_account.holds(key))
"""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from ..agents.base import Agent
from ..agents.http import HttpAgent
from ..agents.payload_schemas import problems
from ..messaging.messages import Mode, Reply, Request
from ..states import Outcome

SECONDS = 30.0  # for a call, unless it is to be unanswered
UNANSWERED_S = 0.2


class AgentContract:
    """Tests of one action; what a subclass leaves out, or a service cannot do, is skipped."""

    agent: type[Agent]
    action: ClassVar[str]
    payload: ClassVar[dict[str, Any]]
    undo: ClassVar[str | None] = None  # the action that takes it back
    refused_payload: ClassVar[dict[str, Any] | None] = None  # that the service refuses permanently
    refusal: ClassVar[str] = ""  # the code of that refusal

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a class that pytest would pass over with a warning."""
        super().__init_subclass__(**options)
        if cls.__name__.startswith("Test") and "__init__" in vars(cls):
            raise TypeError(
                f"{cls.__name__} has __init__, so pytest does not collect it: set up the service in "
                "a fixture, a method marked with @pytest.fixture(autouse=True)"
            )

    def undo_payload(self, key: str, result: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Return the payload of the undo, as the step's `undo_request` makes it; by default by key."""
        return {"key": key}

    def standing(self, key: str, result: dict[str, Any]) -> int | None:  # noqa: ARG002
        """Return how many effects of a key stand at the service; None if it cannot be asked."""
        return None

    def test_same_key_twice_has_one_effect(self) -> None:
        """A repeat gets the first result: the engine repeats what is in doubt under its key."""
        key, result = self._did()
        assert self._done(self.action, self.payload, key) == result
        assert self.standing(key, result) in {1, None}

    @pytest.mark.parametrize("mode", [Mode.SETTLE, Mode.ASK])
    def test_look_up_finds_what_was_done(self, mode: Mode) -> None:
        """The question about a key has the action's own result, and no effect."""
        self._requires(self.agent.can_ask(), "it has no `ask`")
        key, result = self._did()
        assert self._done(self.action, self.payload, key, mode=mode) == result
        assert self.standing(key, result) in {1, None}

    @pytest.mark.parametrize("mode", [Mode.SETTLE, Mode.ASK])
    def test_look_up_of_an_unknown_key_finds_nothing(self, mode: Mode) -> None:
        """The answer "nothing" lets the engine do it under another key."""
        self._requires(self.agent.can_ask(), "it has no `ask`")
        reply = self.perform(self.action, self.payload, _key(), mode=mode)
        assert reply.outcome == Outcome.ABSENT, reply

    def test_undo_takes_back_and_may_be_repeated(self) -> None:
        """An undo may be sent again under its key."""
        undo_key = _key()
        key, result = self._undone(undo_key, undo_key)
        assert self.standing(key, result) in {0, None}

    def test_undo_of_what_is_undone_is_done(self) -> None:
        """An undo may come after a person undid the same by hand."""
        key, result = self._undone(_key(), _key())
        assert self.standing(key, result) in {0, None}

    def test_refusal_is_permanent_and_has_no_effect(self) -> None:
        """A refusal is not a failure, and has a stable code."""
        self._requires(self.refused_payload is not None, "no refused_payload is given")
        key = _key()
        reply = self.perform(self.action, self.refused_payload or {}, key)
        assert (reply.outcome, reply.code) == (Outcome.REJECTED, self.refusal), reply
        assert self.standing(key, {}) in {0, None}

    def test_unanswered_call_is_in_doubt(self) -> None:
        """The effect of a call without an answer may have happened."""
        self._requires(issubclass(self.agent, HttpAgent), "it is not an HttpAgent")
        with _silent_server() as url:
            reply = self.perform(self.action, self.payload, _key(), seconds=UNANSWERED_S, url=url)
        assert (reply.outcome, reply.code) == (Outcome.UNKNOWN, "timeout"), reply

    def test_unreachable_service_did_nothing(self) -> None:
        """A call that never arrived may be repeated under any key."""
        self._requires(issubclass(self.agent, HttpAgent), "it is not an HttpAgent")
        with _silent_server() as url:
            pass
        reply = self.perform(self.action, self.payload, _key(), url=url)
        assert (reply.outcome, reply.code) == (Outcome.TRANSIENT, "unreachable"), reply

    def perform(
        self,
        action: str,
        payload: dict[str, Any],
        key: str,
        *,
        mode: Mode = Mode.DO,
        seconds: float = SECONDS,
        url: str | None = None,
    ) -> Reply:
        """Return the reply to one attempt of one try; payload and result must match their schemas."""
        declared = self.agent.actions()[action]
        assert problems(declared.accepts or {}, payload) == []
        reply = asyncio.run(_perform(self._at(url), _request(action, payload, key, mode, seconds)))
        assert reply is not None, "no reply within the time of the attempt"
        if reply.outcome == Outcome.DONE:
            assert problems(declared.returns or {}, reply.result) == []
        return reply

    def _at(self, url: str | None) -> type[Agent]:
        return self.agent if url is None else type("Elsewhere", (self.agent,), {"base_url": url})

    def _did(self) -> tuple[str, dict[str, Any]]:
        key = _key()
        return key, self._done(self.action, self.payload, key)

    def _done(
        self, action: str, payload: dict[str, Any], key: str, mode: Mode = Mode.DO
    ) -> dict[str, Any]:
        reply = self.perform(action, payload, key, mode=mode)
        assert reply.outcome == Outcome.DONE, reply
        return reply.result

    def _undone(self, *undo_keys: str) -> tuple[str, dict[str, Any]]:
        """Do it, and undo it under each of the keys; return its key and its result."""
        self._requires(self.undo is not None, "nothing undoes it")
        key, result = self._did()
        for undo_key in undo_keys:
            self._done(self.undo or "", self.undo_payload(key, result), undo_key)
        return key, result

    @staticmethod
    def _requires(there: bool, otherwise: str) -> None:
        if not there:
            pytest.skip(otherwise)


def _key() -> str:
    return f"contract:{uuid4().hex}"


def _request(action: str, payload: dict[str, Any], key: str, mode: Mode, seconds: float) -> Request:
    return Request(
        step=1,
        task=uuid4(),
        name="contract",
        attempt=1,
        action=action,
        key=key,
        reference="contract",
        complete_by=time.time() + 2 * SECONDS,
        call_timeout=seconds,
        tries=1,
        payload=payload,
        mode=mode,
        in_doubt=False,
    )


async def _perform(kind: type[Agent], request: Request) -> Reply | None:
    agent = kind("contract")
    try:
        return await agent.answer(request)
    finally:
        await agent.close()


@contextmanager
def _silent_server() -> Iterator[str]:
    """Give the URL of a server that accepts connections and says nothing; later none listens there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
