"""A successor whose turn it is goes from waiting to processing in the transaction that makes it ready."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration import scheduler
from orchestration.database.prepared import statement
from orchestration.messaging import queues
from orchestration.messaging.messages import Request
from orchestration.models import Gate, Hold, Policy, Step
from orchestration.transitions.gates import LOCK
from orchestration.transitions.moves import RELEASED
from tests.support.database import another
from tests.support.engine import claimed, new_task, reply_to, states, step_of

pytestmark = pytest.mark.django_db(transaction=True)


def answer(*requests, outcome="done"):
    """Have a scheduler record replies and claim; return its statements."""
    with CaptureQueriesContext(connection) as seen:
        scheduler.run_once(
            "scheduler-1", [reply_to(request, outcome).dump() for request in requests], []
        )
    return [query["sql"] for query in seen]


def sent() -> list[Request]:
    """Return the requests in the agent's inbox."""
    raw = queues.connection().lrange(queues.inbox("greeter"), 0, -1)
    return [Request.parse(message) for message in raw if message != queues.LOOK]


def released(statements) -> bool:
    """Return whether steps were made pending."""
    return any(f"EXECUTE {statement(RELEASED.statement).name}" in text for text in statements)


def test_successor_is_dispatched_without_a_write_that_makes_it_pending():
    task = new_task()
    (request,) = claimed()
    assert not released(answer(request))
    step = step_of(task, "again")
    assert (step.process_state, step.attempt, step.locked_by) == ("processing", 1, "scheduler-1")
    assert step.pending_since is not None
    assert step.dispatched_at == step.keyed_at >= step.pending_since
    (again,) = sent()
    assert (again.step, again.task, again.name, again.attempt) == (step.id, task.id, "again", 1)
    assert (again.payload, again.key) == (step.request, step.key)
    answer(again)
    task.refresh_from_db()
    assert task.state == "processed"


def test_times_of_a_dispatch_are_one_reading_of_the_clock():
    for _ in range(60):
        new_task()
    answer(*claimed())
    at_once = Step.objects.filter(name="again", process_state="processing")
    assert at_once.count() == 60
    times = at_once.values_list("pending_since", "keyed_at", "dispatched_at")
    assert [each for each in times if len(set(each)) > 1] == []


def test_what_stands_before_it_goes_first():
    Policy.objects.filter(agent="greeter").update(window=1)
    first, other = new_task(), new_task()
    (request,) = claimed()
    assert request.task == first.id
    assert released(answer(request))
    assert states(first) == {"hello": "processed", "again": "pending"}
    assert states(other)["hello"] == "processing"


def test_more_urgent_step_goes_first():
    Policy.objects.filter(agent="greeter").update(window=1)
    first = new_task()
    (request,) = claimed()
    urgent = new_task(priority=5)
    answer(request)
    assert (states(first)["again"], states(urgent)["hello"]) == ("pending", "processing")


@pytest.mark.parametrize(
    "hold",
    [
        {"scope": "agent", "agent": "greeter"},
        {"scope": "all"},
        {"scope": "step", "workflow": "greet", "step": "again"},
        {"scope": "task"},
    ],
)
def test_held_successor_waits(hold):
    task = new_task()
    (request,) = claimed()
    if hold["scope"] == "task":
        hold = {**hold, "task": task}
    Hold.objects.create(cause="hand", actor="ann", reason="wait", **hold)
    assert released(answer(request))
    assert states(task) == {"hello": "processed", "again": "pending"}
    assert sent() == []


def test_open_breaker_lets_none_through():
    task = new_task()
    (request,) = claimed()
    Gate.objects.filter(agent="greeter").update(
        state="open", probe_at="2999-01-01T00:00Z", opened_at="2020-01-01T00:00Z", allowance=0
    )
    answer(request)
    assert states(task)["again"] == "pending"
    assert sent() == []


def test_gate_that_a_session_has_locked_leaves_it_pending():
    task = new_task()
    (request,) = claimed()
    with another() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1 FROM orchestration_gate WHERE agent = 'greeter' FOR UPDATE")
        answer(request)
        assert states(task) == {"hello": "processed", "again": "pending"}
        cursor.execute("ROLLBACK")


@pytest.mark.parametrize("agents", [[], ["greeter"]])
def test_beside_a_rejection_all_is_committed_before_the_claim(agents):
    good, bad = new_task(), new_task()
    requests = {request.task: request for request in claimed()}
    replies = [reply_to(requests[bad.id], "rejected"), reply_to(requests[good.id])]
    with CaptureQueriesContext(connection) as seen:
        scheduler.run_once("scheduler-1", [reply.dump() for reply in replies], agents)
    statements = [query["sql"] for query in seen]
    gate = next(place for place, text in enumerate(statements) if statement(LOCK).name in text)
    assert statements.index("COMMIT") < gate
    assert states(good) == {"hello": "processed", "again": "processing"}
    assert states(bad)["hello"] == "error"
    ((_, good, unanswered, _),) = Gate.objects.get(agent="greeter").slots
    assert (good, unanswered) == (2, 0)  # the claim counts what the replies show of the service
