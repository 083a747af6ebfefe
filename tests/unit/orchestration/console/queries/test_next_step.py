"""What happens next, in a sentence, for every state a step can be in."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestration.decisions.recovery import Thresholds
from orchestration.decisions.wait_reasons import AgentFacts, why_agent
from orchestration.models import Hold, Step, Wait
from orchestration.payloads.placeholders import result
from orchestration.states import GateState, StepState, TaskState
from orchestration.waiting.agent_view import AgentView
from orchestration.waiting.next_step import NextStep, of_step, of_task, telling_step

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
LIMITS = Thresholds(failure_threshold=5, undo_threshold=20, backoff=1, backoff_cap=60)
SOON = NOW + timedelta(seconds=42)
PAST = NOW - timedelta(seconds=42)


SHIPS = result("sort", "ships")


def view(state=GateState.CLOSED, **facts) -> AgentView:
    known = AgentFacts(window=10, state=state, **facts)
    own = {("greet", "patient"): {"failure_threshold": 8, "max_extended_waits": 9}}
    return AgentView(facts=known, blocked=why_agent(known, NOW), thresholds=LIMITS, own=own)


FREE = view()
PROBING = view(GateState.HALF_OPEN)
HELD = view(hold="held by ann")
UNSERVED = view(hold="held by supervisor (no worker serves the queue)", unserved=True)
PROBED = view(GateState.OPEN, probe_at=SOON)
HALF_OPEN = "waiting, the circuit breaker of greeter is half-open"
HOLD = Hold(scope="task", cause="hand", actor="ann", reason="wait for Bob")


def step(state, **fields) -> Step:
    return Step(**{"name": "s", "agent": "greeter", "process_state": state, **fields})


def text_of(outlook: NextStep) -> str:
    return outlook.text + (" …" if outlook.at else "") + outlook.after


@pytest.mark.parametrize(
    ("row", "agents", "expected"),
    [
        (step("waiting", after=["a"]), {}, "waiting for “a”"),
        (step("waiting", after=["a", "b", "c"]), {}, "waiting for “a”, “b” and “c”"),
        (step("waiting", after=["a", "done"]), {}, "waiting for “a”"),
        (step("waiting", after=["done"]), {}, "waiting for other steps"),
        (step("pending"), {"greeter": FREE}, "waiting, its turn is next"),
        (
            step("pending", isolated=True),
            {"greeter": FREE},
            "waiting, another isolated step is in flight at its agent",
        ),
        (
            step("pending"),
            {"greeter": PROBING},
            f"{HALF_OPEN} (too many calls failed; a probe is in flight)",
        ),
        (
            step("pending"),
            {"greeter": PROBED},
            "waiting, the circuit breaker of greeter is open, next probe … (too many calls failed)",
        ),
        (step("pending"), {"greeter": HELD}, "waiting, greeter is held by ann"),
        (
            step("pending"),
            {"greeter": UNSERVED},
            "waiting, greeter is held by supervisor (no worker serves the queue)",
        ),
        (
            step("pending", run_after=SOON, attempt=3, failure_count=0, extended_waits=2),
            {"greeter": FREE},
            "next attempt …, attempt 1 of 5, extended wait 2 of 3",
        ),
        (
            step("pending", name="patient", run_after=SOON, attempt=3, extended_waits=2),
            {"greeter": FREE},
            "next attempt …, attempt 1 of 8, extended wait 2 of 9",
        ),
        (
            step("pending", run_after=SOON, attempt=3, failure_count=6, direction="undo"),
            {"greeter": FREE},
            "next attempt …, attempt 7 of 20",
        ),
        (
            step("processing", locked_by="s-1", complete_by=SOON, probing_outcome=True),
            {},
            "greeter is checking whether the step was done; reply due …",
        ),
        (
            step("pending", run_after=SOON, attempt=3, failure_count=2),
            {"greeter": FREE},
            "next attempt …, attempt 3 of 5",
        ),
        (step("pending", run_after=SOON), {"greeter": FREE}, "begins …"),
        (step("pending", run_after=PAST), {"greeter": FREE}, "begins now"),
        (
            step("pending", run_after=SOON, attempt=3, failure_count=2),
            {},
            "next attempt …, attempt 3",
        ),
        (
            step("pending", run_after=PAST, attempt=3, failure_count=2),
            {"greeter": FREE},
            "next attempt now, attempt 3 of 5",
        ),
        (
            step("processing", locked_by="s-1", complete_by=SOON),
            {},
            "greeter is processing the step; reply due …",
        ),
        (
            step("processing", locked_by="s-1", complete_by=PAST),
            {},
            "no reply before the deadline; the supervisor will decide whether to retry",
        ),
        (
            step("processing", complete_by=PAST, error_code="http_503"),
            {},
            "failed (http_503); the supervisor will decide whether to retry",
        ),
        (step("awaiting"), {}, "waits for the result from greeter"),
        (step("awaiting", flow={"person": "fraud"}), {}, "waits for a decision by fraud"),
        (step("awaiting", flow={"signal": "goods"}), {}, "waits for the signal goods"),
        (step("processed"), {}, "done"),
        (step("error"), {}, "waiting for an operator"),
        (step("error", resolve_by=SOON), {}, "waiting for a fix; the task will be undone …"),
        (step("skipped"), {}, "not needed"),
        (
            step("skipped", flow={"when": SHIPS}),
            {},
            "not needed: its condition does not hold (sort.ships)",
        ),
        (
            step("skipped", flow={"refused": {"no": "pass"}}, outcome="rejected", error_code="no"),
            {},
            "not needed: refused with no, and passed over",
        ),
        (
            step("waiting", after=["a"], flow={"when": SHIPS}),
            {},
            "waiting for “a”; needed if sort.ships",
        ),
        (step("waiting", after=["a"], flow={"refused": {"no": "pass"}}), {}, "waiting for “a”"),
        (step("processed", done_by="ann"), {}, "done by hand by ann"),
        (step("processed", done_by="?"), {}, "done by hand"),
        (step("cancelled"), {}, "cancelled by the undo of the task"),
    ],
)
def test_a_step_says_what_happens_next(row, agents, expected):
    outlook = of_step(row, workflow="greet", done={"done"}, agents=agents, now=NOW)
    assert text_of(outlook) == expected


def test_awaiting_step_says_until_when():
    wait = Wait(ends_by=SOON)
    outlook = of_step(step("awaiting"), workflow="greet", done=set(), agents={}, now=NOW, wait=wait)
    assert (outlook.text, outlook.at) == ("waits for the result from greeter, due", SOON)


@pytest.mark.parametrize(
    ("due_at", "flow", "expected"),
    [
        (SOON, None, "begins …"),
        (PAST, None, "begins now"),
        (SOON, {"when": {"$not": {"$done": ["pay"]}}}, "begins …; needed if pay is not done"),
    ],
)
def test_step_that_waits_for_its_time_says_when_it_begins(due_at, flow, expected):
    row = step("waiting", after=["a"], pending_since=PAST, flow=flow)
    wait = Wait(due_at=due_at)
    outlook = of_step(row, workflow="greet", done={"a"}, agents={}, now=NOW, wait=wait)
    assert text_of(outlook) == expected


def test_step_that_waits_for_its_time_has_more_words_than_those_that_wait_for_others():
    steps = [step("waiting"), step("waiting", pending_since=PAST), step("waiting")]
    assert telling_step(steps) == 1
    assert telling_step([*steps, step("awaiting")]) == 3


def test_a_hold_on_the_task_says_who():
    outlook = of_step(
        step("pending"),
        workflow="greet",
        done=set(),
        agents={"greeter": PROBING},
        now=NOW,
        hold=HOLD,
    )
    assert text_of(outlook) == "waiting, held by ann"


@pytest.mark.parametrize("state", StepState)
def test_each_step_state_has_a_sentence(state):
    row = step(state, complete_by=PAST)
    assert of_step(row, workflow="greet", done=set(), agents={}, now=NOW).text


@pytest.mark.parametrize("state", TaskState)
def test_each_task_state_has_a_sentence(state):
    assert of_task(state, "s", NextStep(text="is at work"), 0).text
    assert of_task(state, "", None, 0).text


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["processed", "error", "processing"], 1),
        (["waiting", "pending", "processing"], 2),
        (["processed", "pending", "waiting"], 1),
        (["processed", "waiting"], 1),
        (["waiting", "awaiting"], 1),
        (["awaiting", "pending"], 1),
        (["processed", "skipped", "cancelled"], None),
        ([], None),
    ],
)
def test_the_most_telling_step_is_found(states, expected):
    assert telling_step([step(state) for state in states]) == expected


@pytest.mark.parametrize(
    ("state", "others", "expected"),
    [
        ("processing", 0, "“s”: retries …, failure 1"),
        ("processing", 1, "“s”: retries …, failure 1; 1 more step in progress"),
        ("processing", 2, "“s”: retries …, failure 1; 2 more steps in progress"),
        ("error", 0, "“s” failed: waiting for an operator"),
        ("error", 1, "“s” failed: waiting for an operator; 1 more step in progress"),
        ("processed", 0, "Ended: all steps are done"),
        ("undone", 0, "Ended: all known effects were undone"),
    ],
)
def test_a_task_speaks_through_its_most_telling_step(state, others, expected):
    outlook = NextStep(text="retries", at=SOON, after=", failure 1")
    if state == "error":
        outlook = NextStep(text="an operator must decide")
    assert text_of(of_task(state, "s", outlook, others)) == expected


def test_task_says_until_when_it_can_be_corrected():
    outlook = NextStep(text="waiting for a fix; the task will be undone", at=SOON)
    text_of_task = text_of(of_task("error", "s", outlook, 1))
    assert text_of_task == (
        "“s”: waiting for a fix; the task will be undone …; 1 more step in progress"
    )


@pytest.mark.parametrize(
    ("skipped", "words"), [(0, ""), (1, "; 1 was not needed"), (2, "; 2 were not needed")]
)
def test_end_of_a_task_says_how_many_steps_were_not_needed(skipped, words):
    steps = [step("processed"), *[step("skipped")] * skipped]
    assert of_task("processed", "", None, 0, steps).text == f"Ended: all steps are done{words}"


def test_effects_left_after_an_undo_are_named():
    standing = [
        Step(name=name, process_state=state, irreversible="sent")
        for name, state in (("letter", "processed"), ("call", "processed"), ("other", "skipped"))
    ]
    assert text_of(of_task("undone", "", None, 0, standing)) == (
        "Ended: all known effects were undone except “letter” and “call”"
    )
