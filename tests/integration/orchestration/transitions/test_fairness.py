"""Keys take turns: in the inbox, at each agent, after a retry, a hold and a resubmission."""

from collections import Counter
from datetime import timedelta

import psycopg2
import pytest
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from orchestration import api, submission
from orchestration.database.prepared import statement
from orchestration.decisions.fairness import LONGEST_KEY, STRIDE
from orchestration.models import Application, FairnessWeight, Hold, Policy, Step, Submission, Task
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.candidates import in_turn
from orchestration.transitions.claim import claim
from orchestration.transitions.create import NewTask, create
from orchestration.transitions.failures import wake
from orchestration.transitions.holds import hold, release, unpark
from orchestration.transitions.replies import record
from orchestration.transitions.turns import STANDINGS
from tests.support.engine import (
    in_error,
    postpone_retries,
    reply_to,
    request_resubmit,
    staff,
    step_of,
    sweep,
)
from tests.support.operators import LEADER
from tests.support.plans import looking, plan
from tests.support.together import at_once

pytestmark = pytest.mark.django_db
MANY, FEW = 400, 10


def new(key, count, **fields):
    """Create tasks of one key in batches, as the submission process does."""
    begun = Task.objects.filter(fairness_key=key).count()
    tasks = [
        NewTask(
            workflow="greet",
            reference=f"{key}-{number}",
            data={"name": "Ada"},
            fairness_key=key,
            **fields,
        )
        for number in range(begun, begun + count)
    ]
    for start in range(0, count, 200):
        with transaction.atomic():
            create(tasks[start : start + 200])


def take(window):
    """Claim as much as a window lets through; return the keys, in the order of their turns."""
    Policy.objects.filter(agent="greeter").update(window=window)
    requests = claim(["greeter"], "scheduler-1").requests.get("greeter", [])
    return [request.reference.split("-")[0] for request in requests]


def test_small_key_goes_before_the_bulk_of_another():
    new("bulk", MANY)
    assert take(50) == ["bulk"] * 50
    new("few", FEW)
    assert Counter(take(50 + 2 * FEW + 1)) == {"bulk": FEW + 1, "few": FEW}


def test_bulk_uses_all_capacity_while_it_is_alone():
    new("bulk", MANY)
    assert len(take(150)) == 150


def test_higher_priority_goes_first():
    new("bulk", 20)
    new("few", 5)
    new("urgent", 20, priority=5)
    assert take(20) == ["urgent"] * 20


def test_keys_take_turns_within_each_priority():
    new("a", 50, priority=5)
    new("a", 50)
    new("b", 5, priority=5)
    new("b", 5)
    assert Counter(take(12)) == {"a": 7, "b": 5}


def test_weights_are_shares():
    FairnessWeight.objects.create(key="gold", weight=3)
    new("gold", 200)
    new("plain", 200)
    got = Counter(take(100))
    assert got["gold"] == pytest.approx(3 * got["plain"], abs=4)


@pytest.mark.parametrize("weight", [0, -1, 0.001, 1000])
def test_a_weight_out_of_bounds_is_refused(weight):
    with pytest.raises(ValidationError, match="A weight is between"):
        FairnessWeight(key="k", weight=weight).full_clean()


def test_steps_without_a_turn_keep_their_order_and_go_first():
    new("old", 20)
    Step.objects.update(turn=0)
    new("young", 5)
    assert take(20) == ["old"] * 20
    going = Step.objects.filter(process_state="processing")
    assert set(going) == set(Step.objects.filter(turn=0, name="hello"))


def test_begun_task_continues_before_new_ones_of_its_key():
    new("bulk", MANY)
    Policy.objects.filter(agent="greeter").update(window=1)
    (request,) = claim(["greeter"], "scheduler-1").requests["greeter"]
    record([reply_to(request)])
    again = Step.objects.get(task=request.task, name="again")
    others = Step.objects.filter(process_state="pending", turn__lt=again.turn)
    assert again.process_state == "pending"
    assert others.count() <= 2


def test_retry_goes_before_its_own_key_but_not_before_a_small_one():
    Policy.objects.update(breaker_calls=200, breaker_failures=200)  # the gate has no part in this
    postpone_retries()
    new("bulk", MANY)
    requests = claim(["greeter"], "scheduler-1").requests["greeter"]
    record([reply_to(request, "transient") for request in requests])
    staff()
    sweep(LEADER)
    failed = Step.objects.exclude(run_after=None)
    assert failed.count() == len(requests) == 100
    new("few", FEW)
    failed.update(run_after=DatabaseNow())
    assert wake(1000) == 100
    got = Counter(take(4 * FEW))
    assert got["few"] >= FEW - 1  # bulk and its retries are two lines beside it
    again = Step.objects.filter(process_state="processing", failure_count=1).count()
    assert again >= FEW - 1


def test_retry_of_a_failing_step_goes_behind_all_waiting_steps():
    postpone_retries()
    new("bulk", 3)
    first, second, _ = claim(["greeter"], "scheduler-1").requests["greeter"]
    record([reply_to(first, "transient"), reply_to(second, "transient")])
    new("bulk", 3)
    staff()
    sweep(LEADER)
    Step.objects.filter(id=first.step).update(own_trouble=True)
    Step.objects.exclude(run_after=None).update(run_after=DatabaseNow())
    assert wake(1000) == 2
    waiting = Step.objects.filter(process_state="pending").order_by("turn", "id")
    line = list(waiting.values_list("id", flat=True))
    assert len(line) == 5
    assert (line.index(first.step), line.index(second.step)) == (4, 1)


@pytest.mark.parametrize(
    "urgent",
    [
        {"probing_outcome": True},
        {"in_doubt": True, "keyed_at": DatabaseNow() - timedelta(hours=20)},
    ],
)
def test_retry_keeps_its_turn_if_an_undo_or_expiring_key_needs_it(urgent):
    Policy.objects.update(key_memory=86_400.0)
    new("bulk", 1)
    (first,) = claim(["greeter"], "scheduler-1").requests["greeter"]
    record([reply_to(first, "transient")])
    new("bulk", 3)
    staff()
    sweep(LEADER)
    Step.objects.filter(id=first.step).update(own_trouble=True, run_after=DatabaseNow(), **urgent)
    assert wake(1000) == 1
    waiting = Step.objects.filter(process_state="pending").order_by("turn", "id")
    assert list(waiting.values_list("id", flat=True)).index(first.step) < 2


def test_released_steps_do_not_go_before_others():
    new("bulk", MANY)
    held = hold(actor="ann", reason="wait", workflow="greet", step="hello")
    assert isinstance(held, Hold)
    while take(100):
        pass
    Step.objects.filter(process_state="pending").update(held_by=held.id)
    assert release(held.id, actor="ann", reason="go on") is None
    unpark()
    new("few", FEW)
    while unpark():
        pass
    assert Counter(take(3 * FEW))["few"] == FEW


def test_a_resubmitted_step_goes_next():
    step = in_error()
    new("bulk", MANY)
    refusal = request_resubmit(
        "greet", step.task.reference, "hello", attempt=step.attempt, actor="ann", reason="again"
    )
    assert refusal is None
    step.refresh_from_db()
    assert Step.objects.filter(process_state="pending", turn__lt=step.turn).count() <= 2


def test_inbox_is_taken_by_turns(django_capture_on_commit_callbacks):
    def posted(key, count):
        return [
            api.Posting(
                workflow="greet", reference=f"{key}{n}", data={"name": "A"}, fairness_key=key
            )
            for n in range(count)
        ]

    api.submit_many(posted("bulk", MANY))
    api.submit_many(posted("few", FEW))
    submission.take(2 * FEW + 1)
    assert Counter(Task.objects.values_list("fairness_key", flat=True))["few"] == FEW
    assert submission.take(MANY) == MANY - FEW - 1


def test_submissions_posted_singly_take_one_turn_per_stride():
    for number in range(5):
        api.submit("greet", reference=str(number), data={"name": "A"}, fairness_key="k")
    turns = list(Submission.objects.order_by("id").values_list("turn", flat=True))
    assert [turn - turns[0] for turn in turns] == [STRIDE * place for place in range(5)]


def test_fairness_key_defaults_to_the_applications_name():
    Application.objects.create(name="till")
    for reference, key in (("1", ""), ("2", "till/night")):
        api.submit(
            "greet", reference=reference, data={"name": "A"}, reply_to="till", fairness_key=key
        )
    api.submit("greet", reference="3", data={"name": "A"})
    submission.take(10)
    keys = dict(Task.objects.values_list("reference", "fairness_key"))
    assert keys == {"1": "till", "2": "till/night", "3": ""}
    assert set(Step.objects.values_list("fairness_key", flat=True)) == set(keys.values())


@pytest.mark.parametrize("key", ["k" * (LONGEST_KEY + 1), "a\0b", "a\nb"])
def test_invalid_fairness_key_is_refused_before_any_write(key):
    with pytest.raises(ValueError, match="the fairness key"):
        api.submit("greet", reference="1", data={"name": "A"}, fairness_key=key)
    assert not Submission.objects.exists()


def test_claim_reads_one_index_without_a_sort():
    for key in ("a", "b", "c"):
        new(key, MANY)
    nodes = plan(
        in_turn(),
        looking(200),
    )
    assert ("Index Scan", "step_turn") in nodes
    assert not any("Sort" in kind or kind == "Seq Scan" for kind, _ in nodes)


def test_position_in_the_queue_costs_two_index_probes():
    for key in ("a", "b", "c"):
        new(key, MANY)
    line = {"of_agents": ["greeter"], "priorities": [0], "keys": ["a"], "lines_from": [0]}
    nodes = plan(STANDINGS, line)
    indexes = {name for _, name in nodes if name}
    assert {"step_turn", "step_line"} <= indexes
    assert not any("Sort" in kind for kind, _ in nodes)


def test_turns_of_a_batch_cost_one_statement(django_assert_num_queries):
    def statements(count):
        with CaptureQueriesContext(connection) as seen:
            new(f"k{count}", count)
        return [
            query["sql"]
            for query in seen.captured_queries
            if statement(STANDINGS).name in query["sql"]
        ]

    assert len(statements(1)) == len(statements(200)) == 1


@pytest.mark.django_db(transaction=True)
def test_concurrent_writers_neither_wait_nor_starve_another_key():
    """Batches that do not see each other overlap: a key has at most as many turns as writers."""
    writers = 4
    barrier_held = _another()
    with barrier_held.cursor() as cursor:  # what a writer that is slow to commit has locked
        cursor.execute("BEGIN")
        cursor.execute("SELECT id FROM orchestration_step FOR UPDATE")

        def write(number):
            def act():
                tasks = [
                    NewTask(
                        workflow="greet",
                        reference=f"bulk-{number}-{n}",
                        data={"name": "A"},
                        fairness_key="bulk",
                    )
                    for n in range(100)
                ]
                with transaction.atomic():
                    create(tasks)

            return act

        at_once({number: write(number) for number in range(writers)})
    barrier_held.close()
    new("few", FEW)
    got = Counter(take((writers + 1) * FEW + writers))
    assert got["few"] == FEW


def _another():
    known = connection.get_connection_params()
    names = ("dbname", "user", "password", "host", "port")
    return psycopg2.connect(**{name: known[name] for name in names if name in known})


@pytest.mark.django_db(transaction=True)
def test_concurrent_workers_take_each_submission_once():
    api.submit_many(
        [
            api.Posting(
                workflow="greet", reference=f"{key}{n}", data={"name": "A"}, fairness_key=key
            )
            for key, count in (("bulk", MANY), ("few", FEW))
            for n in range(count)
        ]
    )
    at_once({number: (lambda: [submission.take(50) for _ in range(8)]) for number in range(3)})
    while submission.take(200):
        pass
    assert Task.objects.count() == MANY + FEW
    assert not Submission.objects.exists()


def test_head_is_not_delayed_by_steps_that_cannot_go_yet():
    """Held steps and those that wait for their time are no part of the line."""
    new("bulk", 20)
    Step.objects.filter(task__reference="bulk-0", name="hello").update(
        turn=5, run_after=DatabaseNow()
    )
    new("few", 1)
    few = step_of(Task.objects.get(fairness_key="few"))
    assert few.turn > 10**18
