"""A person changes a task's priority: at once, with a reason, for steps that have not ended (P16)."""

import pytest
from django.core.management import CommandError
from django.urls import reverse

from orchestration import scheduler
from orchestration.database import sql
from orchestration.decisions.progress import Refusal
from orchestration.models import Event, Policy, Step, Task
from orchestration.states import LOCAL
from orchestration.transitions import priority
from orchestration.transitions.priority import prioritize
from orchestration.transitions.replies import record
from orchestration.transitions.undo import undo
from tests.support import children
from tests.support.commands import tasks
from tests.support.engine import claimed, new_task, reply_to, run_to_end, step_of
from tests.support.operators import browser, person
from tests.support.page import conflict_of, page

pytestmark = pytest.mark.django_db


def operator(*permissions):
    return browser(person("ann", "operate", *permissions))


def address(task):
    return reverse("ops:priority", args=[task.id])


def change(client, task, priority, *, seen=0, reason="they called"):
    return client.post(address(task), {"seen": seen, "priority": priority, "reason": reason})


def next_one():
    """Return the task of the one step that is claimed next."""
    Policy.objects.filter(agent="greeter").update(window=1)
    (request,) = claimed()
    record([reply_to(request)])
    return Task.objects.get(id=request.task)


def test_raised_task_goes_next_and_lowered_task_last():
    first, second, third = new_task(), new_task(), new_task()
    assert prioritize(third.id, 5, actor="ann", reason="they called") is None
    assert prioritize(first.id, -5, actor="ann", reason="it has time") is None
    assert next_one() == third
    assert next_one() == third  # its second step too
    assert [next_one() for _ in range(4)] == [second, second, first, first]


def test_raised_task_goes_behind_others_of_its_key():
    task = new_task()
    urgent = [new_task(priority=5) for _ in range(3)]
    prioritize(task.id, 5, actor="ann", reason="r")
    line = Step.objects.filter(process_state="pending").order_by("-priority", "turn", "id")
    assert [step.task for step in line] == [*urgent, task]


def test_ended_steps_keep_their_priority_and_the_undo_has_the_new_one():
    task = new_task()
    (request,) = claimed()
    record([reply_to(request)])
    prioritize(task.id, 5, actor="ann", reason="r")
    assert (step_of(task).priority, step_of(task, "again").priority) == (0, 5)
    assert undo(task.id, actor="ann", reason="r") is None
    assert Step.objects.get(task=task, direction="undo").priority == 5


def test_children_that_have_not_ended_have_the_new_priority_too(monkeypatch):
    children.declare(monkeypatch)
    order, (first, *_) = children.begun(3)
    record([reply_to(first)])
    Task.objects.filter(parent__task=order, position=1).update(priority=5)
    assert prioritize(order.id, 5, actor="ann", reason="they called") is None
    order.refresh_from_db()
    parcels = Task.objects.filter(parent__task=order).order_by("position")
    assert (order.priority, [parcel.priority for parcel in parcels]) == (5, [0, 5, 5])
    steps = Step.objects.filter(task__in=parcels).order_by("task__position")
    assert [step.priority for step in steps] == [0, 0, 5]  # the second parcel's was changed by hand
    changed = Event.objects.filter(kind="priority").values_list("task", "actor", "reason")
    assert set(changed) == {(task.id, "ann", "they called") for task in (order, parcels[2])}


def meanwhile(monkeypatch, act):
    """Have `act` done between the first look at the family and its lock; return what each look finds."""
    read = sql.run
    asked = []

    def run(statement, parameters):
        rows = read(statement, parameters)
        if statement == priority.FAMILY:
            asked.append(len(rows))
            if len(asked) == 1:
                act()
        return rows

    monkeypatch.setattr(priority.sql, "run", run)
    return asked


def test_children_that_are_made_while_the_priority_changes_have_it(monkeypatch):
    children.declare(monkeypatch)
    order = new_task(workflow="order", data={"to": [1, 2]})
    asked = meanwhile(monkeypatch, lambda: scheduler.run_once("scheduler-0", [], [LOCAL]))
    assert prioritize(order.id, 5, actor="ann", reason="they called") is None
    assert asked == [1, 3, 3]
    assert set(Task.objects.values_list("priority", flat=True)) == {5}


def test_child_that_ends_while_the_priority_changes_keeps_its_own(monkeypatch):
    children.declare(monkeypatch)
    order, (first, _) = children.begun(2)
    meanwhile(monkeypatch, lambda: record([reply_to(first)]))
    assert prioritize(order.id, 5, actor="ann", reason="they called") is None
    parcels = Task.objects.filter(parent__task=order).order_by("position")
    assert [(parcel.state, parcel.priority) for parcel in parcels] == [
        ("processed", 0),
        ("processing", 5),
    ]
    assert not Event.objects.filter(kind="priority", task=parcels[0]).exists()


def test_sent_request_keeps_its_priority():
    task = new_task()
    (request,) = claimed()
    prioritize(task.id, 5, actor="ann", reason="r")
    assert record([reply_to(request)]) is not None
    assert step_of(task).process_state == "processed"
    assert step_of(task, "again").priority == 5


def test_page_changes_the_priority_and_history_records_user_and_reason():
    client, task = operator("prioritize"), new_task()
    task_page = reverse("ops:task", args=[task.id])
    assert page(client.get(task_page)).all(f'a[href="{address(task)}"]')
    assert page(client.get(address(task))).only("#id_priority")["value"] == "0"
    assert change(client, task, 7).status_code == 303
    task.refresh_from_db()
    assert (task.priority, step_of(task).priority) == (7, 7)
    event = Event.objects.get(task=task, kind="priority")
    assert (event.actor, event.reason) == ("ann", "they called")
    assert event.detail == {"before": {"priority": 0}, "after": {"priority": 7}}
    shown = page(client.get(task_page))
    assert shown.only('[data-fact="priority"]').text == "7"
    changed = shown.section("h-events")
    assert (changed.texts("del"), changed.texts("ins")) == (["0"], ["7"])
    assert page(client.get(reverse("ops:audit"))).all(f'a[href^="{task_page}"]')


def test_change_without_reason_or_out_of_bounds_is_refused():
    client, task = operator("prioritize"), new_task()
    for answer in (change(client, task, 7, reason=""), change(client, task, 40_000)):
        assert answer.status_code == 422
    task.refresh_from_db()
    assert task.priority == 0


def test_second_change_names_the_first_user():
    client, task = operator("prioritize"), new_task()
    prioritize(task.id, 3, actor="bea", reason="first")
    answer = change(client, task, 7)
    assert conflict_of(answer)[0] == "bea"
    task.refresh_from_db()
    assert task.priority == 3


def test_ended_task_keeps_its_priority():
    client, task = operator("prioritize"), new_task()
    run_to_end(task)
    assert prioritize(task.id, 3, actor="ann", reason="r") is Refusal.ENDED
    assert address(task) not in client.get(reverse("ops:task", args=[task.id])).text
    assert Refusal.ENDED.value in page(change(client, task, 7)).text


def test_unchanged_priority_is_not_recorded():
    task = new_task()
    assert prioritize(task.id, 0, actor="ann", reason="r") is Refusal.SAME_PRIORITY
    assert not Event.objects.filter(task=task).exists()


def test_command_changes_the_priority():
    task = new_task()
    tasks("prioritize", task.id, "--priority", 5, "--reason", "they called", "--actor", "olga")
    assert Event.objects.get(task=task).actor == "olga"
    assert step_of(task).priority == 5
    with pytest.raises(CommandError, match="already set"):
        tasks("prioritize", task.id, "--priority", 5, "--reason", "again")
    with pytest.raises(CommandError, match="between -32768 and 32767"):
        tasks("prioritize", task.id, "--priority", 40_000, "--reason", "again")
