"""An action that kills or blocks its process fails for it alone; all others are done."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from drill.waiting import wait_for
from orchestration import conf
from orchestration.agents.actions import action
from orchestration.agents.base import Agent
from orchestration.agents.errors import Rejected, Transient, Unknown
from orchestration.agents.performers import Performers
from orchestration.database import clock
from orchestration.messaging.messages import Reply
from tests.support.messages import request

MANY = 40
ENDS = {
    "refused to connect": Transient("unreachable"),
    "too many": Transient("http_429", retry_after=1.0),
    "no answer": Unknown("timeout"),
    "refused": Rejected("declined"),
    "refused under the key": Rejected("declined", stored=True),
}


def note(path):
    with Path(path).open("a") as file:
        file.write("called\n")


class Clerk(Agent):
    name = "clerk"

    @action
    async def write(self, call):
        await asyncio.sleep(0.05)
        return {"by": os.getpid()}

    @action
    async def die(self, call):
        os.kill(os.getpid(), signal.SIGKILL)

    @action
    async def die_later(self, call):
        await asyncio.gather(asyncio.sleep(0.02), self._die_in_a_task())

    async def _die_in_a_task(self):
        await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)

    @action
    async def leave(self, call):
        sys.exit(3)

    @action
    async def block(self, call):
        time.sleep(60)  # noqa: ASYNC251 - it is what is tested

    @action
    async def spin(self, call):
        while True:
            pass

    @action
    async def call_service(self, call):
        """Have the effect and wait for the answer; a repeat ends as the payload says."""
        if not call.in_doubt:
            note(call.payload["sent"])
            await asyncio.sleep(60)
        raise ENDS[call.payload["end"]]

    @action
    async def hang(self, call):
        await asyncio.sleep(60)

    @action
    async def think_soon(self, call):
        await asyncio.sleep(call.payload["after"])
        time.sleep(0.25)  # noqa: ASYNC251 - less than a standstill
        return {"by": os.getpid()}

    @action
    async def leave_behind(self, call):
        self.left = asyncio.create_task(self.spin(call))
        return {"by": os.getpid()}

    @action
    async def note_and_wait(self, call):
        note(call.payload["calls"])
        self.computed = asyncio.Event()
        await self.computed.wait()
        return {}

    @action
    async def compute(self, call):
        time.sleep(0.6)  # noqa: ASYNC251 - it is what is tested
        if hasattr(self, "computed"):
            self.computed.set()
        return {}

    @action
    async def think(self, call):
        time.sleep(1.5)  # noqa: ASYNC251 - it is what is tested
        return {"by": os.getpid()}


def perform(*actions, seconds=5.0, **fields):
    """Return the reply to each action, or None, all of them asked for at once."""

    async def run():
        performers = Performers(Clerk("clerk-1"))
        try:
            requests = [
                request(step=step, action=name, complete_by=clock.now() + seconds, **fields)
                for step, name in enumerate(actions, start=1)
            ]
            answers = await asyncio.gather(*(performers.answer(message) for message in requests))
        finally:
            await performers.close()
        return [raw and Reply.parse(raw) for raw in answers]

    return asyncio.run(run())


def test_requests_run_in_one_child_process(monkeypatch):
    # a child that is kept from the processor for long is taken for blocked
    monkeypatch.setattr(conf, "PERFORMER_BLOCKED_AFTER_S", 60.0)
    replies = perform(*["write"] * MANY)
    assert {reply.outcome for reply in replies} == {"done"}
    (process,) = {reply.result["by"] for reply in replies}
    assert process != os.getpid()


@pytest.mark.parametrize("bad", ["die", "die_later", "leave"])
@pytest.mark.parametrize("count", [1, 5])
def test_request_that_kills_its_process_fails_alone(bad, count):
    names = ["write"] * MANY
    for place in range(count):
        names[place * (MANY // count)] = bad
    replies = perform(*names)
    failed = [reply for reply, name in zip(replies, names, strict=True) if name == bad]
    assert {(reply.outcome, reply.code) for reply in failed} == {("unknown", "agent_error")}
    assert all("its process died" in reply.message for reply in failed)
    assert [reply.outcome for reply in replies if reply not in failed] == ["done"] * (MANY - count)


@pytest.mark.parametrize("bad", ["block", "spin"])
@pytest.mark.parametrize("count", [1, 5])
def test_request_that_blocks_its_process_fails_alone(bad, count):
    names = ["write"] * MANY
    for place in range(count):
        names[place * (MANY // count)] = bad
    begun = time.monotonic()
    replies = perform(*names, seconds=6)
    assert time.monotonic() - begun < 12
    failed = [reply for reply, name in zip(replies, names, strict=True) if name == bad]
    assert {(reply.outcome, reply.code) for reply in failed} == {("unknown", "agent_error")}
    done = [reply for reply in replies if reply not in failed]
    assert [reply.outcome for reply in done] == ["done"] * (MANY - count)
    assert max(reply.ended for reply in done) - min(reply.started for reply in replies) < 5


@pytest.mark.parametrize("bad", ["die", "block"])
@pytest.mark.parametrize(
    ("end", "outcome", "in_doubt"),
    [
        ("refused to connect", "unknown", True),
        ("too many", "unknown", True),
        ("no answer", "unknown", True),
        ("refused", "rejected", True),
        ("refused under the key", "rejected", False),
    ],
)
def test_reply_of_a_repeated_request_keeps_the_doubt_about_its_first_call(
    tmp_path, bad, end, outcome, in_doubt
):
    sent = tmp_path / "sent"

    async def run():
        performers = Performers(Clerk("clerk-1"))
        later = {"complete_by": clock.now() + 5}
        try:
            payload = {"sent": str(sent), "end": end}
            call = request(step=1, action="call_service", payload=payload, **later)
            first = asyncio.create_task(performers.answer(call))
            await asyncio.to_thread(wait_for, sent.exists, "it has its effect", 5)
            second = asyncio.create_task(performers.answer(request(step=2, action=bad, **later)))
            try:
                return Reply.parse(await first)
            finally:
                second.cancel()
        finally:
            await performers.close()

    reply = asyncio.run(run())
    assert (reply.outcome, reply.code) == (outcome, ENDS[end].code)
    assert (reply.outcome == "unknown" or reply.in_doubt) == in_doubt


def test_short_block_repeats_no_other_request(tmp_path):
    """What waits for its service then has its answer a little later, and is not called twice."""
    calls = tmp_path / "calls"

    async def run():
        performers = Performers(Clerk("clerk-1"))
        later = {"complete_by": clock.now() + 9}
        try:
            payload = {"calls": str(calls)}
            waits = request(step=1, action="note_and_wait", payload=payload, **later)
            first = asyncio.create_task(performers.answer(waits))
            await asyncio.to_thread(wait_for, calls.exists, "it has called", 5)
            reply = await performers.answer(request(step=2, action="compute", **later))
            return [Reply.parse(raw).outcome for raw in (await first, reply)]
        finally:
            await performers.close()

    assert asyncio.run(run()) == ["done", "done"]
    assert calls.read_text() == "called\n"


def test_request_that_uses_the_processor_for_a_while_succeeds():
    replies = perform("think", *["write"] * MANY)
    assert {reply.outcome for reply in replies} == {"done"}


def test_only_one_more_request_runs_once_one_has_used_up_its_time():
    async def run():
        performers = Performers(Clerk("clerk-1"))
        try:
            await performers.answer(request(action="block", complete_by=clock.now() + 1))
            later = clock.now() + 60
            more = [
                asyncio.create_task(performers.answer(request(action="block", complete_by=later)))
                for _ in range(3)
            ]
            ended, waiting = await asyncio.wait(more, timeout=10)
            for call in waiting:
                call.cancel()
        finally:
            await performers.close()
        return [Reply.parse(call.result()).code for call in ended]

    assert asyncio.run(run()) == ["agent_error"] * 2


def test_first_of_several_stuck_requests_may_end(monkeypatch):
    monkeypatch.setattr(conf, "MAX_BLOCKED_PERFORMERS", 1)

    async def run():
        performers = Performers(Clerk("clerk-1"))
        try:
            calls = []
            for _ in range(3):
                stuck = request(action="think", complete_by=clock.now() + 9)
                calls.append(asyncio.create_task(performers.answer(stuck)))
                await asyncio.sleep(0.1)
            return [Reply.parse(raw).outcome for raw in await asyncio.gather(*calls)]
        finally:
            await performers.close()

    assert asyncio.run(run())[0] == "done"


def test_request_that_waits_too_long_does_not_stop_one_that_computes():
    async def run():
        performers = Performers(Clerk("clerk-1"))
        patient = {"call_timeout": 9.0}
        hangs = request(action="hang", complete_by=clock.now() + 1.5, **patient)
        soon = {"after": 1.3}  # when the other is over
        thinks = request(action="think_soon", payload=soon, complete_by=clock.now() + 9, **patient)
        try:
            return await asyncio.gather(performers.answer(hangs), performers.answer(thinks))
        finally:
            await performers.close()

    silent, done = asyncio.run(run())
    assert silent is None or Reply.parse(silent).code != "agent_error"
    assert Reply.parse(done).outcome == "done"


def test_leftovers_of_an_answered_request_are_ended():
    async def run():
        performers = Performers(Clerk("clerk-1"))
        try:
            left = request(action="leave_behind", complete_by=clock.now() + 9)
            process = Reply.parse(await performers.answer(left)).result["by"]
            after = await performers.answer(request(action="write", complete_by=clock.now() + 9))
            await asyncio.to_thread(wait_for, lambda: not _lives(process), "it ends", 5)
        finally:
            await performers.close()
        return Reply.parse(after).outcome

    assert asyncio.run(run()) == "done"


def test_no_reply_after_its_time():
    assert perform("write", seconds=0.0) == [None]


def test_process_ends_with_its_worker(tmp_path):
    pids = tmp_path / "pids"
    worker = os.fork()
    if worker == 0:

        async def run():
            performers = Performers(Clerk("clerk-1"))
            raw = await performers.answer(request(action="write", complete_by=clock.now() + 5))
            pids.write_text(str(Reply.parse(raw).result["by"]))
            await asyncio.sleep(60)

        try:
            asyncio.run(run())
        finally:
            os._exit(0)
    wait_for(lambda: pids.exists() and pids.read_text(), "it has performed", 10)
    process = int(pids.read_text())
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    wait_for(lambda: not _lives(process), "its process ends too", 5)


def test_idle_process_ends(monkeypatch):
    monkeypatch.setattr(conf, "PERFORMER_IDLE_S", 0.1)

    async def run():
        performers = Performers(Clerk("clerk-1"))
        try:
            outcomes = []
            for _ in range(2):
                raw = await performers.answer(request(action="write", complete_by=clock.now() + 5))
                process = Reply.parse(raw).result["by"]
                outcomes.append(Reply.parse(raw).outcome)
                await asyncio.to_thread(wait_for, lambda p=process: not _lives(p), "it ends", 5)
                performers.tidy()
        finally:
            await performers.close()
        return outcomes

    assert asyncio.run(run()) == ["done", "done"]


def _lives(process):
    try:
        with Path(f"/proc/{process}/stat").open() as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
