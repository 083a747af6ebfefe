"""One reason why a step waits, the same on its page, in the alert and in the metrics."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration.console.metrics import exposition
from orchestration.models import Alert, Gate, Policy, Step, Task
from orchestration.models.fields import DatabaseNow
from orchestration.monitoring import monitors
from orchestration.monitoring.monitors import Debounce
from orchestration.transitions.claim import claim
from orchestration.transitions.create import NewTask, create
from orchestration.transitions.holds import hold
from orchestration.waiting.wait_reasons import why_each
from tests.support.engine import new_task, staff, step_of
from tests.support.operators import browser, person

pytestmark = pytest.mark.django_db
LONG = timedelta(hours=1)


def bulk(key, count, priority=0):
    create(
        [
            NewTask(
                workflow="greet",
                reference=f"{key}{n}",
                data={"name": "A"},
                fairness_key=key,
                priority=priority,
            )
            for n in range(count)
        ]
    )


def full():
    """Have a window that is full, and steps of two keys that wait."""
    bulk("first", 2)
    Policy.objects.filter(agent="greeter").update(window=2)
    assert len(claim(["greeter"], "scheduler-1").requests["greeter"]) == 2
    bulk("a", 5)
    bulk("b", 1)


def paused():
    Gate.objects.filter(agent="greeter").update(paused_until=DatabaseNow() + LONG)
    bulk("a", 6)


def used_up():
    Policy.objects.filter(agent="greeter").update(rate=0.001)
    Gate.objects.filter(agent="greeter").update(tokens=0, tokens_at=DatabaseNow())
    bulk("a", 5)
    bulk("b", 1)


def retried():
    bulk("a", 3)
    Step.objects.filter(name="hello").update(run_after=DatabaseNow() + LONG)


def held():
    bulk("a", 2)
    made = hold(actor="ann", reason="r", workflow="greet", step="hello")
    Step.objects.filter(name="hello").update(held_by=made.id)


def agent_held():
    bulk("a", 2)
    hold(actor="ann", reason="r", agent="greeter")


def isolated():
    bulk("a", 2)
    Step.objects.filter(name="hello").update(isolated=True)


def outranked():
    full()
    bulk("urgent", 3, priority=5)
    Step.objects.filter(task__reference="a4").update(isolated=True)


WORLDS = {
    full: {"key": 4, "window": 2},
    outranked: {"priority": 5, "isolated": 1, "key": 2, "window": 1},
    paused: {"paused": 6},
    used_up: {"key": 4, "rate": 2},
    retried: {"retry": 3},
    held: {"hold": 2},
    agent_held: {"agent_hold": 2},
    isolated: {"isolated": 2},
}


def counted():
    """Return the metric, without what is zero."""
    text = exposition.expose("text/plain")[0].decode()
    counts = {}
    for line in text.splitlines():
        if line.startswith('sas_waiting_because{agent="greeter"'):
            labels, value = line.rsplit(" ", 1)
            if float(value):
                counts[labels.split('reason="')[1].split('"')[0]] = int(float(value))
    return counts


@pytest.mark.parametrize("world", WORLDS)
def test_reason_of_each_step_matches_the_metric(world):
    world()
    assert counted() == WORLDS[world]
    pending = Step.objects.filter(process_state="pending").values_list("id", flat=True)
    by_reason = {}
    for _, why in why_each(pending):
        by_reason[str(why.reason)] = by_reason.get(why.reason, 0) + 1
    assert by_reason == WORLDS[world]


def test_page_counts_the_steps_of_its_key_before_a_step():
    full()
    client = browser(person("olga", "operate"))
    last = Task.objects.get(reference="a4")
    text = client.get(f"/ops/tasks/{last.id}/").content.decode()
    assert "behind 4 others with the same fairness key" in text
    assert "<code>a</code>" in text  # the key it takes turns under
    first = Task.objects.get(reference="b0")
    text = client.get(f"/ops/tasks/{first.id}/").content.decode()
    assert "waiting, the window is full, 2 of 2 in flight" in text


def test_alert_names_the_reason():
    staff()
    full()
    oldest = step_of(Task.objects.get(reference="b0"))
    Step.objects.filter(id=oldest.id).update(pending_since=DatabaseNow() - LONG)
    monitors.look(Debounce())
    alert = Alert.objects.get(fingerprint="system/waiting/greeter")
    assert "waiting, the window is full, 2 of 2 in flight." in alert.detail


def test_queries_are_independent_of_the_number_of_waiting_steps():
    def cost():
        with CaptureQueriesContext(connection) as spent:
            counted()
        return len(spent)

    bulk("a", 1)
    before = cost()
    for key in "bcd":
        bulk(key, 50)
    assert cost() == before


def test_step_that_waits_for_its_task_is_behind_no_other():
    task = new_task()
    assert step_of(task, "again").process_state == "waiting"
    assert why_each([]) == []
