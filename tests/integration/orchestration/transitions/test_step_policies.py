"""Thresholds of a step: two steps call one agent, and share its gate, window and breaker."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration import policies, registry
from orchestration.api import Step as Declared
from orchestration.api import Workflow
from orchestration.housekeeping import agent_rows
from orchestration.models import Gate, Policy, Step, StepPolicy
from orchestration.models.fields import DatabaseNow
from orchestration.policies import StepKey
from orchestration.transitions.claim import claim
from orchestration.transitions.replies import record
from tests.support.engine import claimed, new_task, reply_to, staff, step_of, sweep
from tests.support.operators import LEADER

pytestmark = pytest.mark.django_db
HELLO, AGAIN = StepKey("greet", "hello", "greeter"), StepKey("greet", "again", "greeter")


@pytest.fixture(autouse=True)
def _staffed(db):
    staff()
    Policy.objects.update(backoff=600, backoff_cap=600)  # until `due`


def own(step, workflow="greet", **values):
    assert StepPolicy.objects.filter(workflow=workflow, step=step).update(**values) == 1


def at_both():
    """Return a task whose first step is out, one whose second is, and the requests of both steps."""
    first, second = new_task(), new_task()
    requests = {request.task: request for request in claimed()}
    record([reply_to(requests[second.id])])
    (last,) = claimed()
    return first, second, [requests[first.id], last]


def fail(requests, outcome="transient"):
    record([reply_to(request, outcome) for request in requests])
    sweep(LEADER)


def due():
    """Let all waits of retries pass; return the requests of the steps that go again."""
    Step.objects.filter(run_after__isnull=False).update(run_after=DatabaseNow())
    sweep(LEADER)
    return claimed()


def state_of(task, name):
    step = step_of(task, name)
    return step.process_state, step.failure_count


def test_steps_of_one_agent_bear_different_numbers_of_failures():
    own("hello", failure_threshold=2)
    own("again", failure_threshold=3)
    first, second, requests = at_both()
    fail(requests)
    fail(due())
    assert state_of(first, "hello") == ("error", 2)
    assert state_of(second, "again") == ("pending", 2)
    fail(due())
    assert state_of(second, "again") == ("error", 3)
    assert Gate.objects.filter(agent="greeter").count() == 1


def test_steps_with_values_of_their_own_share_the_window_and_the_breaker():
    own("hello", failure_threshold=9)
    own("again", on_rejection="undo")
    Policy.objects.filter(agent="greeter").update(window=2, breaker_failures=2)
    _, _, requests = at_both()
    new_task()
    assert claimed() == []  # one of each step is out: the window is full
    heard = record([reply_to(request, "transient") for request in requests]).observed
    assert claim(["greeter"], "scheduler-1", heard).requests == {}
    assert Gate.objects.get(agent="greeter").state == "open"  # by one failure of each step


def test_refusals_of_one_agent_have_different_consequences():
    own("again", on_rejection="undo")
    first, second, requests = at_both()
    record([reply_to(request, "rejected") for request in requests])
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.state, step_of(first).process_state) == ("error", "error")
    assert second.undo_at is not None


def test_refused_step_waits_for_as_long_as_its_own_policy_says():
    Policy.objects.filter(agent="greeter").update(on_rejection="wait", resolve_within=60)
    own("again", resolve_within=6000)
    first, second, requests = at_both()
    record([reply_to(request, "rejected") for request in requests])
    waits = [
        (step.resolve_by - step.ended_at).total_seconds()
        for step in (step_of(first), step_of(second, "again"))
    ]
    assert [round(wait) for wait in waits] == [60, 6000]


def test_step_of_its_own_kind_past_the_threshold():
    Policy.objects.filter(agent="greeter").update(failure_threshold=1)
    own("hello", past_threshold="wait", extended_wait=100.0, max_extended_waits=1)
    own("again", past_threshold="undo")
    first, second, requests = at_both()
    record([reply_to(request, "transient") for request in requests])
    sweep(LEADER)
    hello = step_of(first)
    assert (hello.process_state, hello.extended_waits) == ("pending", 1)
    second.refresh_from_db()
    assert second.undo_at is not None
    fail(due())
    assert state_of(first, "hello")[0] == "error"  # its one extended wait is over


def test_undo_step_has_the_undo_threshold_of_the_step_that_it_undoes():
    Policy.objects.filter(agent="greeter").update(failure_threshold=1)
    own("hello", undo_threshold=2)
    own("again", on_rejection="undo")
    _, second, requests = at_both()
    record([reply_to(request, "rejected" if request.name == "again" else "done")
            for request in requests])  # fmt: skip
    undo = [request for request in claimed() if request.task == second.id]
    fail(undo)
    step = Step.objects.get(task=second, direction="undo", name="hello")
    assert (step.process_state, step.failure_count) == ("pending", 1)
    fail([request for request in due() if request.task == second.id])
    step.refresh_from_db()
    assert (step.process_state, step.failure_count) == ("error", 2)


def test_change_takes_effect_for_steps_in_flight():
    first, second, requests = at_both()
    fail(requests)
    own("hello", failure_threshold=2)
    fail(due())
    assert state_of(first, "hello") == ("error", 2)
    assert state_of(second, "again") == ("pending", 2)
    own("hello", failure_threshold=None)
    assert policies.of_steps([HELLO])[HELLO].failure_threshold == 5


def test_empty_values_are_those_of_the_agent():
    Policy.objects.filter(agent="greeter").update(failure_threshold=7, on_rejection="wait")
    own("again", on_rejection="error")
    known = policies.of_steps([HELLO, AGAIN, HELLO])
    assert known.keys() == {HELLO, AGAIN}
    assert [(known[key].failure_threshold, known[key].on_rejection) for key in (HELLO, AGAIN)] == [
        (7, "wait"), (7, "error")
    ]  # fmt: skip
    lost = StepKey("gone", "gone", "gone")
    assert policies.of_steps([lost])[lost] == policies.thresholds(Policy())


def test_undo_threshold_in_force_is_at_least_the_failure_threshold():
    own("hello", failure_threshold=30)
    assert policies.of_steps([HELLO])[HELLO].undo_threshold == 30


def test_thresholds_of_any_number_of_steps_cost_two_queries(django_assert_num_queries):
    keys = [HELLO, AGAIN, StepKey("invite", "send", "greeter"), StepKey("pay", "pay", "payment")]
    with django_assert_num_queries(2):
        policies.of_steps(keys)


def test_reply_that_is_done_reads_no_thresholds():
    new_task()
    (request,) = claimed()
    with CaptureQueriesContext(connection) as seen:
        record([reply_to(request)])
    assert not [query for query in seen if "policy" in query["sql"]]


def test_sweep_reads_the_thresholds_once_for_any_number_of_failures():
    def read_for(count):
        for _ in range(count):
            new_task()
        record([reply_to(request, "transient") for request in claimed()])
        with CaptureQueriesContext(connection) as seen:
            sweep(LEADER)
        queries = [query["sql"] for query in seen]
        return sum('FROM "orchestration_steppolicy" WHERE' in query for query in queries)

    assert read_for(1) == read_for(20) == 1


def steps_of(name, *steps):
    return Workflow(name=name, steps=[
        Declared(agent="greeter", action="greet", undo=None, **step) for step in steps
    ])  # fmt: skip


def test_rows_have_the_first_values_of_the_declaration_and_keep_what_admins_set(monkeypatch):
    first = {"name": "tea", "policy": {"failure_threshold": 9, "on_rejection": "undo"}}
    monkeypatch.setitem(registry.workflows, "serve", steps_of("serve", first, {"name": "cake"}))
    agent_rows.ensure_declared()
    rows = {row.step: (row.agent, row.own) for row in StepPolicy.objects.filter(workflow="serve")}
    assert rows == {
        "tea": ("greeter", {"failure_threshold": 9, "on_rejection": "undo"}),
        "cake": ("greeter", {}),
    }
    own("tea", "serve", failure_threshold=2)
    first["policy"]["failure_threshold"] = 8
    agent_rows.ensure_declared()
    assert StepPolicy.objects.get(step="tea").failure_threshold == 2
    assert StepPolicy.history.filter(step="tea").count() == 1


def test_row_names_the_agent_of_a_later_release_and_stays_without_a_step(monkeypatch):
    monkeypatch.setitem(registry.workflows, "serve", steps_of("serve", {"name": "tea"}))
    agent_rows.ensure_declared()
    moved = Declared(name="tea", agent="payment", action="charge", undo=None)
    monkeypatch.setitem(registry.workflows, "serve", Workflow(name="serve", steps=[moved]))
    agent_rows.ensure_declared()
    assert StepPolicy.objects.get(step="tea").agent == "payment"
    monkeypatch.delitem(registry.workflows, "serve")
    agent_rows.ensure_declared()
    assert StepPolicy.objects.filter(step="tea").exists()


def test_computed_steps_have_no_policies():
    assert set(StepPolicy.objects.filter(workflow="invite").values_list("step")) == {("send",)}


def test_rows_cost_one_query_once_they_are_there(django_assert_num_queries):
    with django_assert_num_queries(1):
        agent_rows.ensure_steps()
