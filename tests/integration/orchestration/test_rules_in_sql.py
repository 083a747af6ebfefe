"""Rules that Python and SQL both state: for every input that may be, they agree."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product

import pytest
from django.db import transaction

from orchestration import api
from orchestration.console.statistics import rollups
from orchestration.database import clock, sql
from orchestration.decisions.compensation import may_be_done
from orchestration.decisions.fairness import Arrival, Line, Position, give_turns
from orchestration.decisions.gate import room
from orchestration.decisions.progress import after_reply
from orchestration.models import FairnessWeight, Gate, GateRollUp, Policy, Step, Submission
from orchestration.models.hold import HoldCause
from orchestration.models.step import claimable
from orchestration.operations.items import MAY_BE_DONE
from orchestration.states import ANSWERED, GateState, Outcome, StepState
from orchestration.transitions.gates import lock_gates
from orchestration.transitions.holds import held, hold
from orchestration.transitions.locked_task import lock
from orchestration.transitions.replies import record
from orchestration.transitions.undo import undo
from tests.support.engine import claimed, new_task, reply_to, step_of

pytestmark = pytest.mark.django_db
REPLIES = [*ANSWERED, Outcome.TRANSIENT, Outcome.UNKNOWN]


def view_of(task, step):
    with transaction.atomic():
        return lock([task.id])[task.id].steps[step.id]


def test_a_step_that_may_be_done():
    new_task()
    step = step_of(Step.objects.get(name="hello").task)
    view = view_of(step.task, step)
    rows = [
        view.altered(state=state, in_doubt=in_doubt, locked_by=locked_by)
        for state, in_doubt, locked_by in product(StepState, (True, False), (None, "scheduler-1"))
    ]
    answers = sql.run(
        f"SELECT {MAY_BE_DONE} FROM unnest(%(states)s::text[], %(doubts)s::bool[], %(by)s::text[])"
        " WITH ORDINALITY AS s (process_state, in_doubt, locked_by, place) ORDER BY place",
        {
            "states": [str(row.state) for row in rows],
            "doubts": [row.in_doubt for row in rows],
            "by": [row.locked_by for row in rows],
        },
    )
    assert [answer for (answer,) in answers] == [may_be_done(row) for row in rows]


@pytest.mark.parametrize("undoing", [False, True])
@pytest.mark.parametrize("reported", [None, False, True])
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("outcome", REPLIES)
def test_a_step_after_a_reply(outcome, before, reported, undoing):
    task = new_task()
    (request,) = claimed()
    step = step_of(task)
    Step.objects.filter(id=step.id).update(in_doubt=before)
    if undoing:
        assert undo(task.id, actor="ann", reason="a test") is None
    view = view_of(task, step)
    reply = reply_to(request, outcome, in_doubt=reported)
    expected = after_reply(view, outcome, reply.result, undoing=undoing, in_doubt=reported)
    assert record([reply]).accepted == 1
    after = view_of(task, step)
    for field in ("state", "locked_by", "outcome", "in_doubt", "result"):
        assert getattr(after, field) == getattr(expected, field), field


@pytest.mark.parametrize("paused", [None, 2000, 2100])
@pytest.mark.parametrize("allowance", [0, 1, 5, 1000])
@pytest.mark.parametrize("state", GateState)
def test_the_room_at_a_gate_without_rate(state, allowance, paused):
    until = paused and datetime(paused, 1, 1, tzinfo=UTC)
    # once its probe is due, an open one has room for that; a chart shows it as shut until it is sent
    probe = datetime(2100, 1, 1, tzinfo=UTC) if state == GateState.OPEN else None
    Gate.objects.filter(agent="greeter").update(
        state=state, allowance=allowance, paused_until=until, probe_at=probe
    )
    rollups.observe_gates([60])
    with transaction.atomic():
        gate = lock_gates(["greeter"])["greeter"]
    limits = replace(gate.limits, rate=None)
    expected = room(gate.view, limits, 0, clock.database_now().timestamp())
    assert GateRollUp.objects.get(agent="greeter", span=60).room == expected


def test_the_room_at_a_gate_that_is_held():
    hold(agent="greeter", actor="ann", reason="a test")
    rollups.observe_gates([60])
    assert GateRollUp.objects.get(agent="greeter", span=60).room == 0
    assert Policy.objects.get(agent="greeter").window > 0


BY_HAND = [(scope, HoldCause.HAND) for scope in ("all", "agent", "step", "task")]


@pytest.mark.parametrize(
    ("scope", "cause"),
    [*BY_HAND, ("agent", HoldCause.NO_WORKER), ("agent", HoldCause.BREAKER), ("task", None)],
)
def test_a_step_that_is_held(scope, cause):
    task = new_task()
    step = step_of(task)
    target = {
        "all": {},
        "agent": {"agent": "greeter"},
        "step": {"workflow": "greet", "step": "hello"},
        "task": {"task": task.id},
    }[scope]
    if cause:
        hold(actor="ann", reason="a test", cause=cause, **target)
    is_held = cause in {HoldCause.HAND, HoldCause.NO_WORKER}
    assert held([step.id]) == ({step.id} if is_held else set())
    assert len(claimed()) == (0 if is_held else 1)


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("parked", [False, True])
def test_a_step_that_is_claimable(later, parked):
    step = step_of(new_task())  # the other one waits
    values = {}
    if later:
        values["run_after"] = datetime(2100, 1, 1, tzinfo=UTC)
    if parked:
        values["held_by"] = hold(agent="other", actor="ann", reason="a test")
    Step.objects.filter(id=step.id).update(**values)
    rows = sql.run(f"SELECT s.id FROM orchestration_step s WHERE {claimable('s')}", {})
    assert rows == ([] if later or parked else [(step.id,)])
    assert [request.step for request in claimed()] == [number for (number,) in rows]


@pytest.mark.parametrize("weights", [{}, {"a": 3.0, "b": 0.07}])
@pytest.mark.parametrize("waiting", [[], [("a", 0)] * 3, [("a", 0), ("b", 0), ("b", 7)]])
def test_turns_of_submissions(waiting, weights):
    FairnessWeight.objects.bulk_create(
        FairnessWeight(key=key, weight=weight) for key, weight in weights.items()
    )
    posted = [("b", 0), ("a", 0), ("c", 7), ("a", 0), ("a", 0), ("c", 7), ("b", 0)]
    post = [
        api.Posting(
            workflow="greet",
            reference=str(number),
            data={"name": "A"},
            priority=priority,
            fairness_key=key,
        )
        for number, (key, priority) in enumerate([*waiting, *posted])
    ]
    for message in post[: len(waiting)]:
        api.submit_many([message])
    before = list(Submission.objects.values_list("priority", "fairness_key", "turn"))
    standings = {
        Line("", priority, key): Position(
            head=min((turn for p, _, turn in before if p == priority), default=None),
            last=max((turn for p, k, turn in before if (p, k) == (priority, key)), default=None),
            weight=weights.get(key, 1),
            now=0,
        )
        for key, priority in posted
    }
    api.submit_many(post[len(waiting) :])
    turns = dict(Submission.objects.values_list("reference", "turn"))
    recorded = [turns[message.reference] for message in post[len(waiting) :]]
    expected = give_turns([Arrival(Line("", priority, key)) for key, priority in posted], standings)
    now = {}  # where an empty line began: at the clock
    for line, turn, other in zip(posted, recorded, expected, strict=True):
        empty = standings[Line("", line[1], line[0])].head is None
        shift = now.setdefault(line, turn - other) if empty else 0
        assert turn - other == shift
        assert abs(shift - clock.database_now().timestamp() * 1e9) < 60e9 or not empty
