"""The circuit breaker in the database: what is heard, who is a probe, whose trouble a failure is."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration.decisions.gate import BEHIND, PROBES
from orchestration.models import Alert, Gate, IncidentHit, Policy, Step
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.claim import claim
from orchestration.transitions.replies import record
from tests.support.engine import claimed, new_task, reply_to, staff, step_of, sweep
from tests.support.operators import LEADER

pytestmark = pytest.mark.django_db


def gate():
    return Gate.objects.get(agent="greeter")


def opened(**fields):
    Gate.objects.filter(agent="greeter").update(
        **{"state": "open", "opened_at": DatabaseNow(), "probe_at": DatabaseNow(), **fields}
    )


def turn(*replies):
    """Record replies and claim, as a scheduler does."""
    recorded = record(list(replies))
    return claim(["greeter"], "scheduler-1", recorded.observed).requests.get("greeter", [])


def swept():
    """Have the supervisor decide about what failed; make what waits for its retry claimable."""
    staff()
    sweep(LEADER)
    Step.objects.filter(run_after__isnull=False).update(run_after=DatabaseNow())
    sweep(LEADER)


def fail(request):
    """Have an attempt fail, with its decision; the breaker does not count it."""
    record([reply_to(request, "transient")])
    swept()


def test_outcomes_count_by_the_time_of_the_request():
    new_task()
    (request,) = claimed()
    Step.objects.filter(id=request.step).update(dispatched_at="2026-01-01T00:00:00Z")
    turn(reply_to(request, "transient", dispatch=0))
    assert gate().slots == []  # too long ago to say anything
    new_task()
    (request,) = claimed()
    turn(reply_to(request, "transient"))
    ((start, good, bad, asked),) = gate().slots
    assert 0 <= request.dispatch / 1e6 - start <= 1.0
    assert (good, bad, asked) == (0, 1, 0)


def test_closed_breaker_remembers_successes():
    """Failures are a share of all calls, though most of these were good and long before."""
    for _ in range(20):
        new_task()
    for request in claimed():
        turn(reply_to(request))
    assert sum(good for _, good, _, _ in gate().slots) == 20
    while requests := claimed():
        turn(*(reply_to(request, "transient") for request in requests[:5]))
        break
    assert gate().state == "closed"


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "open"),
        ({"code": "agent_error", "health": "nothing"}, "closed"),  # a mistake in our own code
        ({"code": "http_404", "health": "good"}, "closed"),  # it answers, and does not know this
        ({"code": "http_503", "retry_after": 1.0}, "closed"),
    ],
)
def test_failures_of_one_step_do_not_count_for_the_service(fields, state):
    for _ in range(8):
        new_task()
    turn(*(reply_to(request, "transient", **fields) for request in claimed()))
    assert gate().state == state


def test_probes_take_turns():
    tasks = [new_task() for _ in range(4)]
    opened()
    tried = []
    for _ in range(8):
        opened()
        (request,) = claimed()
        assert gate().state == "half_open"
        tried.append(request.task)
        fail(request)
    order = [task.id for task in tasks]
    assert tried == order * 2


def test_a_step_that_was_never_sent_goes_before_all_others():
    poison, other = new_task(), new_task()
    opened()
    last = new_task(priority=-10)
    for task in (poison, other, last, poison):
        (request,) = claimed()
        assert request.task == task.id
        fail(request)


def test_several_probes_go_one_at_a_time_before_it_pauses_again():
    for _ in range(PROBES + 2):
        new_task()
    opened()
    (request,) = claimed()
    for _ in range(PROBES - 1):
        assert claimed() == []
        (request,) = turn(reply_to(request, "transient"))
        assert gate().state == "half_open"
    assert turn(reply_to(request, "transient")) == []
    assert gate().state == "open"


def test_calls_from_before_the_outage_do_not_keep_it_open():
    new_task()
    (hung,) = claimed()
    for _ in range(6):
        new_task()
    opened()
    (probe,) = claimed()
    assert claimed() == []
    assert len(turn(reply_to(probe))) == 4  # it recovers; the one that hangs takes no place
    assert step_of(hung.task).process_state == "processing"


def test_calls_from_before_the_outage_do_not_offset_failures():
    Policy.objects.filter(agent="greeter").update(window=60)
    for _ in range(48):
        new_task()
    assert len(claimed()) == 48  # they hang
    opened(state="recovering", allowance=4, since=DatabaseNow())
    for _ in range(8):
        new_task()
    turn(*(reply_to(request, "transient") for request in claimed()))
    assert gate().allowance < 4


def test_failed_probes_are_excused_unless_others_succeed_between():
    poison = new_task()
    for _ in range(3):
        opened()
        (request,) = claimed()
        fail(request)
    step = step_of(poison)
    assert (step.failure_count, step.own_trouble) == (0, False)  # an outage, as far as is known
    good = new_task()
    opened()
    (request,) = claimed()
    assert request.task == good.id
    request, next_of_good = turn(reply_to(request))
    assert gate().state == "recovering"
    record([reply_to(next_of_good)])
    for count in range(1, 6):
        assert request.task == poison.id
        fail(request)
        step = step_of(poison)
        assert (step.failure_count, step.own_trouble) == (count, True)
        opened()
        request = next(iter(claimed()), None)
    assert step.process_state == "error"
    assert IncidentHit.objects.filter(step=step).exists()


@pytest.mark.parametrize("behind", [{"own_trouble": True}, {"isolated": True}])
def test_probe_that_always_returns_first_does_not_starve_others(behind):
    poison, good = new_task(), new_task()
    Step.objects.filter(task=good, name="hello").update(attempt=2, **behind)
    probed = []
    for _ in range(2 + BEHIND + 2):
        opened()
        (request,) = claimed()
        probed.append(request.task)
        fail(request)
    assert probed.index(good.id) > 5
    assert probed.count(poison.id) > BEHIND


def test_failure_unrelated_to_the_service_is_never_excused():
    task = new_task()
    for count in range(1, 6):
        opened()
        (request,) = claimed()
        record([reply_to(request, "unknown", code="agent_error", health="nothing")])
        swept()
        assert step_of(task).failure_count == count
    assert step_of(task).process_state == "error"


def test_lookup_without_effect_is_not_a_failure():
    task = new_task()
    (request,) = claimed()
    record([reply_to(request, "unknown")])
    swept()
    (request,) = claimed()
    turn(reply_to(request, "absent"))
    swept()
    step = step_of(task)
    assert (step.failure_count, step.own_trouble) == (1, False)
    opened()
    fail(claimed()[0])
    assert step_of(task).failure_count == 1


def test_two_requests_that_are_always_rejected_stop_no_others():
    """However slowly others come: the two end in error, and every other step is done."""
    poison = {new_task().id for _ in range(2)}
    for _ in range(30):
        new_task()
        Gate.objects.filter(state="open").update(probe_at=DatabaseNow())
        requests = claimed()
        while requests:
            request = requests.pop()
            good = request.task not in poison
            requests += turn(reply_to(request, "done" if good else "transient"))
        swept()
    assert {step_of(task).process_state for task in poison} == {"error"}
    waiting = Step.objects.filter(process_state__in=("pending", "processing"))
    assert not waiting.exists()
    assert gate().state == "closed"


def test_retry_after_delays_one_step_and_is_not_counted():
    new_task()
    (request,) = claimed()
    turn(reply_to(request, "transient", code="http_503", retry_after=600.0))
    assert step_of(request.task).retry_after == 600
    staff()
    sweep(LEADER)
    step = step_of(request.task)
    assert step.failure_count == 0
    assert 590 < (step.run_after - step.pending_since).total_seconds() < 601
    new_task()
    (other,) = claimed()  # no other step waits for it
    assert turn(reply_to(other)) != []


def test_too_many_requests_pauses_the_agent():
    new_task()
    (request,) = claimed()
    turn(reply_to(request, "transient", code="http_429", health="busy", retry_after=600.0))
    new_task()
    assert claimed() == []
    assert (gate().paused_until - step_of(request.task).dispatched_at).total_seconds() > 599
    assert gate().state == "closed"


def test_outage_opens_one_alert_and_recovery_closes_it():
    Policy.objects.filter(agent="greeter").update(window=4)
    tasks = [new_task() for _ in range(10)]
    while gate().state == "closed":
        turn(*(reply_to(request, "transient") for request in claimed()))
        swept()
    alert = Alert.objects.get(fingerprint="gate/greeter")
    assert alert.closed_at is None
    Gate.objects.update(probe_at=DatabaseNow())
    (probe,) = claimed()
    assert turn(reply_to(probe)) != []
    assert gate().state == "closed"
    alert.refresh_from_db()
    assert alert.closed_at is not None
    assert {step_of(task).own_trouble for task in tasks} == {False}


def test_all_gates_of_a_turn_are_written_by_one_statement():
    for _ in range(3):
        new_task()
    replies = [reply_to(request) for request in claimed()]
    recorded = record(replies)
    with CaptureQueriesContext(connection) as queries:
        claim(["greeter"], "scheduler-1", recorded.observed)
    written = [query for query in queries if "EXECUTE sas_update_gate" in query["sql"]]
    assert len(written) == 1
