"""What happens next, in a sentence, for every state a step can be in."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestration.models import Hold, Step
from orchestration.queries.outlook import AgentView, Outlook, of_step, of_task, telling_step
from orchestration.states import GateState, StepState, TaskState
from orchestration.waiting import AgentFacts, why_agent

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
SOON = NOW + timedelta(seconds=42)
PAST = NOW - timedelta(seconds=42)


def view(state=GateState.CLOSED, **facts) -> AgentView:
    known = AgentFacts(window=10, state=state, **facts)
    return AgentView(facts=known, blocked=why_agent(known, NOW), failure_threshold=5)


FREE = view()
PROBING = view(GateState.HALF_OPEN)
HELD = view(hold="held by ann because: they move")
UNSERVED = view(hold="held by supervisor because: no worker serves its queue", unserved=True)
PROBED = view(GateState.OPEN, probe_at=SOON)
HALF_OPEN = "waits: the circuit breaker of greeter is half-open"
HOLD = Hold(scope="task", actor="ann", reason="wait for Bob")


def step(state, **fields) -> Step:
    return Step(name="s", agent="greeter", process_state=state, **fields)


def said(outlook: Outlook) -> str:
    return outlook.text + (" …" if outlook.at else "") + outlook.after


@pytest.mark.parametrize(
    ("row", "agents", "expected"),
    [
        (step("waiting", after=["a"]), {}, "waits for “a”"),
        (step("waiting", after=["a", "b", "c"]), {}, "waits for “a”, “b” and “c”"),
        (step("waiting", after=["a", "done"]), {}, "waits for “a”"),
        (step("waiting", after=["done"]), {}, "waits for its turn"),
        (step("pending"), {"greeter": FREE}, "waits: its turn is next"),
        (
            step("pending", alone=True),
            {"greeter": FREE},
            "waits: nothing else that fell silent may be at its agent",
        ),
        (
            step("pending"),
            {"greeter": PROBING},
            f"{HALF_OPEN} (too many of its calls failed; a probe is out)",
        ),
        (
            step("pending"),
            {"greeter": PROBED},
            "waits: the circuit breaker of greeter is open, probe … (too many of its calls failed)",
        ),
        (step("pending"), {"greeter": HELD}, "waits: greeter is held by ann because: they move"),
        (
            step("pending"),
            {"greeter": UNSERVED},
            "waits: greeter is held by supervisor because: no worker serves its queue",
        ),
        (
            step("pending", run_after=SOON, failure_count=0, rounds=2),
            {"greeter": FREE},
            "retries …, attempt 1 of 5, extended wait 2 of 3",
        ),
        (
            step("pending", run_after=SOON, failure_count=6, direction="undo"),
            {"greeter": FREE},
            "retries …, attempt 7 of 20",
        ),
        (
            step("processing", locked_by="s-1", complete_by=SOON, settling=True),
            {},
            "greeter is asked whether it was done, its reply is due …",
        ),
        (
            step("pending", run_after=SOON, failure_count=2),
            {"greeter": FREE},
            "retries …, attempt 3 of 5",
        ),
        (step("pending", run_after=SOON, failure_count=2), {}, "retries …, attempt 3"),
        (
            step("pending", run_after=PAST, failure_count=2),
            {"greeter": FREE},
            "is about to be retried, attempt 3 of 5",
        ),
        (
            step("processing", locked_by="s-1", complete_by=SOON),
            {},
            "greeter is at work, its reply is due …",
        ),
        (
            step("processing", locked_by="s-1", complete_by=PAST),
            {},
            "no reply came in time: the supervisor decides whether to retry",
        ),
        (
            step("processing", complete_by=PAST, error_code="http_503"),
            {},
            "failed (http_503): the supervisor decides whether to retry",
        ),
        (step("processed"), {}, "done"),
        (step("error"), {}, "an operator must decide"),
        (step("error", mend_by=SOON), {}, "waits to be mended; its task is undone …"),
        (step("skipped"), {}, "done by hand"),
        (step("cancelled"), {}, "never to run: the task is undone"),
    ],
)
def test_a_step_says_what_happens_next(row, agents, expected):
    outlook = of_step(row, done={"done"}, agents=agents, now=NOW)
    assert said(outlook) == expected


def test_a_hold_on_the_task_says_who_and_why():
    outlook = of_step(step("pending"), done=set(), agents={"greeter": PROBING}, now=NOW, hold=HOLD)
    assert said(outlook) == "waits: held by ann because: wait for Bob"


@pytest.mark.parametrize("state", StepState)
def test_no_state_is_without_words(state):
    row = step(state, complete_by=PAST)
    assert of_step(row, done=set(), agents={}, now=NOW).text


@pytest.mark.parametrize("state", TaskState)
def test_no_task_is_without_words(state):
    assert of_task(state, "s", Outlook(text="is at work"), 0).text
    assert of_task(state, "", None, 0).text


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["processed", "error", "processing"], 1),
        (["waiting", "pending", "processing"], 2),
        (["processed", "pending", "waiting"], 1),
        (["processed", "waiting"], 1),
        (["processed", "skipped", "cancelled"], None),
        ([], None),
    ],
)
def test_the_most_telling_step_is_found(states, expected):
    assert telling_step([step(state) for state in states]) == expected


@pytest.mark.parametrize(
    ("state", "others", "expected"),
    [
        ("processing", 0, "“s” retries …, failure 1"),
        ("processing", 1, "“s” retries …, failure 1; 1 more step is under way"),
        ("processing", 2, "“s” retries …, failure 1; 2 more steps are under way"),
        ("error", 0, "An operator must decide: the step “s” failed"),
        ("error", 1, "An operator must decide: the step “s” failed; 1 more step is under way"),
        ("processed", 0, "Nothing more: every step is done"),
        ("undone", 0, "Nothing more: every effect was undone"),
    ],
)
def test_a_task_speaks_through_its_most_telling_step(state, others, expected):
    outlook = Outlook(text="retries", at=SOON, after=", failure 1")
    if state == "error":
        outlook = Outlook(text="an operator must decide")
    assert said(of_task(state, "s", outlook, others)) == expected


def test_a_task_says_until_when_it_can_be_mended():
    outlook = Outlook(text="waits to be mended; its task is undone", at=SOON)
    said_of_task = said(of_task("error", "s", outlook, 1))
    assert said_of_task == (
        "“s” waits to be mended; its task is undone …; 1 more step is under way"
    )


def test_what_stands_after_an_undo_is_named():
    assert said(of_task("undone", "", None, 0, ["letter", "call"])) == (
        "Nothing more: all was undone but “letter” and “call”, which stand"
    )
