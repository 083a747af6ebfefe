"""Every way in which an attempt can end: what is believed then, and what the service's ledger says.

Each end is really made to happen, against a sandbox in a process of its own; docs/results/attempts.md is the
table of what was seen. After a wanted change of it: `ATTEMPTS=write make test ARGS="-k attempt_ends"`.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as attribute
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from drill.waiting import wait_for
from orchestration import registry
from orchestration.agents.actions import action
from orchestration.agents.http import HttpAgent
from orchestration.agents.performers import Performers
from orchestration.messaging.messages import Reply
from orchestration.models import Policy, Step, Task
from orchestration.models.fields import DatabaseNow
from orchestration.payloads.placeholders import key
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import resubmit
from orchestration.transitions.undo import undo
from orchestration.workflows.step import Step as StepDeclaration
from orchestration.workflows.workflow import Workflow
from tests.support.engine import claimed, new_task, staff, sweep
from tests.support.operators import LEADER
from tests.support.sandbox import process, send
from tests.support.violations import violations

TABLE = Path(__file__).parents[4] / "docs" / "results" / "attempts.md"
QUICK = 1.0  # seconds a call may take
LATE = 1.5  # seconds after which a late effect comes
FAST = {"bench": 0}


class Guest(HttpAgent):
    """Calls a service that its author hardly knows: HttpAgent with its defaults."""

    name = "greeter"

    def __init__(self, base_url, *, raises=""):
        super().__init__("agent-1")
        self.base_url, self.raises = base_url, raises

    @action
    async def greet(self, call):
        if self.raises == "before":
            raise KeyError("a mistake")
        answer = await self.post(call, "/bench/calls", body=call.payload, expect={"id": str})
        if self.raises == "after":
            raise KeyError("a mistake")
        return answer

    @action
    async def kill(self, call):
        os.kill(os.getpid(), signal.SIGKILL)

    @action
    async def block(self, call):
        time.sleep(60)  # noqa: ASYNC251 - it is what is tested

    @action
    async def take_back(self, call):
        return await self.post(call, "/bench/undo", body=call.payload, expect={"effect": str})


class Host(Guest):
    """As `Guest`; it declares that its service keeps every refusal under the key."""

    stores_refusals = True


class OneCall(Guest):
    """As `Guest`; only the first call of an attempt finds its service."""

    @action
    async def greet(self, call):
        if call.in_doubt:
            self.base_url = "http://127.0.0.1:1"
        return await super().greet(call)


@dataclass(kw_only=True)
class End:
    """One way to end: what befalls the call, who makes it, and what becomes of the reply."""

    what: str
    fault: dict[str, Any] | None = None
    first: dict[str, Any] | None = None  # befalls the first of two quick tries
    agent: Callable[[str], HttpAgent] = Guest
    killed: str = ""  # "before", "during" or "after" the call: the agent's process
    reply: str = "recorded"  # or "lost", "late", "twice"
    beside: str = (
        ""  # what another request does to the process once the call is done: "kill", "block"
    )
    fields: dict[str, Any] = attribute(default_factory=dict)  # of the request


def answered(status, **more):
    return {"fault": "status", "status": status, **more}


def done_and_answered(status):
    return {"fault": "status_after_effect", "status": status}


LATER = "time-out, done later"
REFUSALS = (400, 402, 406, 410, 411, 412, 413, 414, 415, 416, 421, 422, 424, 426, 428, 431, 451)
TIMED_OUT = {"fault": "timeout_after_effect", "seconds": 9}
ENDS = [
    End(what="it is done, and confirmed"),
    # the connection
    End(what="no connection can be made", agent=lambda _: Guest("http://127.0.0.1:1")),
    End(what="cut before it is done", fault={"fault": "reset"}),
    End(what="cut after it is done, before the answer", fault={"fault": "reset_after_effect"}),
    End(what="cut within the answer", fault={"fault": "reset_within_answer"}),
    End(what="time-out, nothing done", fault={"fault": "timeout", "seconds": 9}),
    End(what="time-out, done in silence", fault=TIMED_OUT),
    End(what=LATER, fault={"fault": "late_effect", "seconds": LATE}),
    End(what="an answer that comes byte by byte", fault={"fault": "drip", "seconds": 9}),
    # statuses: the service's own, or a proxy's
    *(End(what=f"{status}", fault=answered(status)) for status in (302, 307)),
    *(End(what=f"{status}", fault=answered(status)) for status in REFUSALS),
    *(End(what=f"{status}", fault=answered(status)) for status in (401, 403, 404, 405, 407)),
    *(End(what=f"{status}", fault=answered(status)) for status in (408, 409, 423, 425, 429)),
    End(what="429 with Retry-After", fault={"fault": "too_many_requests", "retry_after": 1}),
    *(End(what=f"{status}", fault=answered(status)) for status in (500, 501, 502, 503, 504)),
    End(what="503 with Retry-After", fault=answered(503, retry_after=1)),
    *(
        End(what=f"{status} after it is done", fault=done_and_answered(status))
        for status in (408, 409, 423, 500, 502, 503, 504)
    ),
    # answers that say yes
    End(what="200 that is not JSON", fault={"fault": "html"}),
    End(what="200, half of its JSON", fault={"fault": "wrong_json"}),
    End(what="200 of another shape", fault={"fault": "wrong_schema"}),
    End(what="200 with an error in it", fault={"fault": "ok_with_error"}),
    # refusals
    End(what="refused, and kept under the key", fault={"fault": "reject"}),
    End(what="time-out, done; the quick repeat meets 409", first=TIMED_OUT, fault=answered(409)),
    End(what="time-out, done; the quick repeat is refused", first=TIMED_OUT, fault=answered(422)),
    End(what="time-out, done; the quick repeat meets 401", first=TIMED_OUT, fault=answered(401)),
    End(what="time-out, nothing done; the quick repeat is refused, and that is kept",
        first={"fault": "timeout", "seconds": 9}, fault={"fault": "reject"}, agent=Host),
    # the agent
    End(what="the agent's code fails before the call", agent=lambda url: Guest(url, raises="before")),
    End(what="the agent's code fails after the call", agent=lambda url: Guest(url, raises="after")),
    End(what="the agent has no such action", fields={"action": "gone"}),
    End(what="the request comes past its time", fields={"complete_by": 1.0}),
    End(what="the agent is killed before the call", killed="before"),
    End(what="the agent is killed during the call", killed="during",
        fault={"fault": "latency", "seconds": LATE}),
    End(what="the agent is killed after the call", killed="after"),
    # the reply
    End(what="the reply is lost", reply="lost"),
    End(what="the reply comes past its time", reply="late"),
    End(what="the reply comes twice", reply="twice"),
    End(what="a refusal comes twice", reply="twice", fault={"fault": "reject"}),
]  # fmt: skip

# Ends that only an isolated agent has: another request kills or blocks the process during the call,
# which is done by then, and it is performed anew.
ANEW = [
    End(what=f"another request {befalls} the process once it is done; the call anew {meets}",
        beside=beside, first=TIMED_OUT, fault=fault, agent=agent, fields={"call_timeout": 8.0, "tries": 1})
    for beside, befalls in (("kill", "kills"), ("block", "blocks"))
    for meets, fault, agent in (
        ("succeeds", None, Guest),
        ("meets 429", {"fault": "too_many_requests", "retry_after": 1}, Guest),
        ("meets 401", answered(401), Guest),
        ("finds no connection", None, OneCall),
        ("meets 500", answered(500), Guest),
        ("is refused", answered(422), Guest),
    )
]  # fmt: skip

pytestmark = pytest.mark.django_db


@pytest.fixture
def sandbox(tmp_path):
    with process(tmp_path) as (_, port):
        yield port


@pytest.fixture(autouse=True)
def _engine(monkeypatch):
    step = StepDeclaration(
        name="call", agent="greeter", action="greet", undo="take_back",
        undo_request={"key": key("call")},
    )  # fmt: skip
    monkeypatch.setitem(registry.workflows, "one", Workflow(name="one", steps=[step]))
    Policy.objects.filter(agent="greeter").update(
        window=1000, breaker_calls=200, breaker_failures=200, breaker_share=1.0, tries=1,
        call_timeout=QUICK, on_rejection="error", past_threshold="error", backoff=0.01,
        backoff_cap=0.01,
    )  # fmt: skip
    staff()


class InPerformers:
    """Has an agent's requests performed in other processes, as the worker of an isolated agent does."""

    def __init__(self, agent):
        self.performers = Performers(agent)

    async def answer(self, request) -> Reply | None:
        raw = await self.performers.answer(request)
        return Reply.parse(raw) if raw else None

    async def close(self):
        await self.performers.close()


class Tries:
    """One task for each end; what is asked of their steps, and how that ended."""

    def __init__(self, port, *, isolated):
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        self.isolated, self.ends = isolated, [*ENDS, *ANEW] if isolated else ENDS
        self.tasks = [new_task(workflow="one") for _ in self.ends]
        self.order = [task.id for task in self.tasks]

    def step(self, number) -> Step:
        return Step.objects.get(task=self.tasks[number], direction="do")

    def standing(self, number) -> int:
        """Return how many effects of a task stand at the service, all keys together."""
        task = self.tasks[number].id
        entries = send(self.port, "GET", "/ledger?limit=1000")[1]["entries"]
        made = [entry for entry in entries if (entry["key"] or "").startswith(str(task))]
        calls = sum(entry["effect"] == "call" for entry in made)
        return calls - sum(entry["effect"] == "void" for entry in made)

    def script(self):
        faults = []
        for end, task in zip(self.ends, self.order, strict=True):
            for fault in (end.first, end.fault):
                if fault:
                    scripted = {"partner": "bench", "action": "*", "key": f"{task}:*", "times": 1}
                    faults.append({**scripted, **fault})
        assert send(self.port, "PUT", "/faults", body={"faults": faults, "latency": FAST})[0] == 200

    def first(self):
        """Have each attempt end in its way."""
        self.script()
        requests = {request.task: request for request in claimed()}
        asked = [
            requests[task].altered(**{"tries": 2 if end.first else 1, **end.fields})
            for end, task in zip(self.ends, self.order, strict=True)
        ]
        for end, request in zip(self.ends, asked, strict=True):
            if end.killed:
                self.kill(end, request)
        replies = asyncio.run(self.answer(asked))
        late = []
        for end, reply in zip(self.ends, replies, strict=True):
            if reply is None or end.reply == "lost":
                continue
            if end.reply == "late":
                late.append(reply)
            else:
                record([reply] * (2 if end.reply == "twice" else 1))
        expired = Step.objects.filter(process_state="processing", locked_by__isnull=False)
        expired.update(complete_by=DatabaseNow())
        sweep(LEADER)
        record(late)
        send(self.port, "PUT", "/faults", body={"faults": [], "latency": FAST})
        wait_for(
            lambda: self.standing([end.what for end in ENDS].index(LATER)), "late effects come", 5
        )

    async def answer(self, requests) -> list[Reply | None]:
        """Have all requests performed at once, each by its agent; ends with an agent of their own, apart."""
        agents = {}
        calls = []
        for number, (end, request) in enumerate(zip(self.ends, requests, strict=True)):
            apart = number if end.beside else end.agent
            agent = agents.setdefault(apart, self.performing(end))
            calls.append(self.answer_one(number, agent, request))
        try:
            return await asyncio.gather(*calls)
        finally:
            for agent in agents.values():
                await agent.close()

    def performing(self, end):
        agent = end.agent(self.url)
        return InPerformers(agent) if self.isolated else agent

    async def answer_one(self, number, agent, request) -> Reply | None:
        end = self.ends[number]
        if end.killed:
            return None
        call = asyncio.create_task(agent.answer(request))
        if end.beside:
            done = partial(self.standing, number)
            await asyncio.to_thread(wait_for, done, "the call is done", 6)
            other = asyncio.create_task(agent.answer(request.altered(action=end.beside)))
            try:
                return await call
            finally:
                other.cancel()
        return await call

    def kill(self, end, request):
        """Perform a request in a process that is killed on the way."""
        child = os.fork()
        if child == 0:
            try:
                if end.killed != "before":
                    asyncio.run(self.answer_alone(end, request))
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        if end.killed == "during":
            at_work = "/keys/" + request.key.replace(":", "%3A")
            wait_for(lambda: send(self.port, "GET", at_work)[0] == 409, "the call is at work", 5)
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    async def answer_alone(self, end, request):
        await self.performing(end).answer(request)

    def run(self):
        """Have a service that works answer all, to the end; return each task's first request."""
        first = {}

        def turn():
            staff()  # without living workers, nothing is claimed
            sweep(LEADER)
            Step.objects.filter(run_after__isnull=False).update(run_after=None)
            requests = claimed()
            for request in requests:
                first.setdefault(request.task, request)
            record(asyncio.run(self.all_of(requests)))
            open_ones = Task.objects.filter(id__in=self.order, ended_at=None)
            return not open_ones.exists()

        wait_for(turn, "all tasks end", 90)
        return [first.get(task) for task in self.order]

    async def all_of(self, requests):
        agent = Guest(self.url)
        try:
            return await asyncio.gather(*(agent.answer(request) for request in requests))
        finally:
            await agent.close()

    def steps(self):
        """Return the steps that do the work, in the order of their ends."""
        by_task = {step.task_id: step for step in Step.objects.filter(direction="do")}
        return [by_task[task] for task in self.order]


BELIEFS = {"processed": "done", True: "perhaps done", False: "not done"}
HEAD = """# How an attempt can end

Made by `tests/integration/orchestration/transitions/test_attempt_ends.py`, which has each of these
ends really happen at a service and compares what the engine believes with the service's ledger: it
never believes "not done" where there is an effect. The agent is an `HttpAgent` with its defaults:
its author knows little of the service. It ends in the same way where the agent is `isolated`; the last
rows are of such an agent only. The next try is a retry, or what an operator resubmits
without changes; it and the undo were run to their ends: afterwards there was one effect, or none.

| the attempt ends | recorded as | believed | at the service | next try | undo |
| --- | --- | --- | --- | --- | --- |
"""


@pytest.mark.parametrize("isolated", [False, True])
def test_step_with_an_effect_in_the_ledger_never_counts_as_undone(sandbox, isolated):
    """Also, the next try leaves exactly one effect, and an undo none."""
    retried = Tries(sandbox, isolated=isolated)
    retried.first()
    ends = retried.steps()
    beliefs = [BELIEFS.get(step.process_state) or BELIEFS[step.in_doubt] for step in ends]
    effects = [retried.standing(number) for number in range(len(retried.ends))]
    for end, known, effect in zip(retried.ends, beliefs, effects, strict=True):
        assert (known, effect) not in {("not done", 1), ("done", 0)}, end.what

    for step in ends:
        if step.process_state == "error":
            resubmit(step.id, attempt=1, actor="olga", reason="again")
    again = retried.run()
    assert set(Task.objects.filter(id__in=retried.order).values_list("state", flat=True)) == {
        "processed"
    }
    assert {retried.standing(number) for number in range(len(retried.ends))} == {1}

    undone = Tries(sandbox, isolated=isolated)
    undone.first()
    for task in undone.tasks:
        assert undo(task.id, actor="olga", reason="cancelled") is None
    turned = undone.steps()
    asked = undone.run()
    assert set(Task.objects.filter(id__in=undone.order).values_list("state", flat=True)) == {
        "undone"
    }
    assert {undone.standing(number) for number in range(len(retried.ends))} == {0}
    assert violations() == []

    rows = [
        " | ".join(
            [
                f"| {end.what}",
                " ".join(f"{step.outcome} {code(step)}".split()),
                known,
                "done" if effect else "nothing",
                next_key(step, request),
                f"{way_back(state, first)} |",
            ]
        )
        for end, step, known, effect, request, state, first in zip(
            retried.ends, ends, beliefs, effects, again, turned, asked, strict=True
        )
    ]
    if isolated and os.environ.get("ATTEMPTS") == "write":
        TABLE.write_text(HEAD + "\n".join(rows) + "\n")
    text = TABLE.read_text()
    assert text.startswith(HEAD)
    table = text.removeprefix(HEAD).splitlines()
    assert table[: len(rows)] == rows, "the table differs: see the top of this test"
    assert len(table) == len(ENDS) + len(ANEW)


def code(step) -> str:
    return f"`{step.error_code}`" if step.error_code else ""


def next_key(step, request) -> str:
    if step.process_state == "processed":
        return "none"
    way = "resubmitted, " if step.process_state == "error" else ""
    return f"{way}{'the same key' if request.generation == 1 else 'a new key'}"


def way_back(step, first) -> str:
    if step.process_state == "cancelled":
        return "nothing is sent"
    if step.process_state == "processed":
        return "undone"
    assert first.mode == "settle"
    return "tried again under the same key, then undone"
