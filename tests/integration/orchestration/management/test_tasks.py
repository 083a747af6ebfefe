"""`manage.py tasks`: the operators' acts from a shell, guarded like everywhere else."""

import pytest
from django.core.management import CommandError

from orchestration.models import Event, Gate, Step, Task
from orchestration.transitions.holds import unpark
from orchestration.transitions.replies import record
from tests.support.commands import tasks
from tests.support.engine import claimed, in_error, new_task, reply_to, step_of

pytestmark = pytest.mark.django_db


def test_undo_does_what_its_preview_shows():
    task = new_task()
    (request,) = claimed()
    record([reply_to(request)])
    preview = tasks("preview", task.id)
    assert [call["key"] for call in preview["calls"]] == [f"{task.id}:hello:undo:1"]
    assert preview["cancelled"] == ["again"]
    tasks("undo", task.id, "--reason", "cancelled", "--actor", "olga")
    assert Task.objects.get(id=task.id).state == "undoing"
    (request,) = claimed()
    assert request.key == preview["calls"][0]["key"]
    with pytest.raises(CommandError, match="being undone"):
        tasks("undo", task.id, "--reason", "again")
    assert tasks("list", "--state", "undoing")[0]["reference"] == task.reference


def test_task_is_named_by_its_id_or_its_reference():
    task = new_task()
    shown = tasks("show", task.id)
    assert tasks("show", f"greet/{task.reference}") == shown
    with pytest.raises(CommandError, match="'greet/no' is neither a task's id nor"):
        tasks("show", "greet/no")


def test_wait_fails_with_the_reason_if_the_task_is_in_error():
    step = in_error()
    reason = rf"task {step.task_id} is in error: step {step.id}, hello, "
    with pytest.raises(CommandError, match=reason):
        tasks("wait", "greet", step.task.reference)
    tasks("done", step.id, "--reason", "by phone", "--result", '{"id": "by-hand"}')
    with pytest.raises(CommandError, match="not come to its end"):
        tasks("wait", "greet", step.task.reference, "--seconds", "0")


def test_changed_input_keeps_its_schema_and_gets_a_new_key():
    step = in_error()
    with pytest.raises(CommandError, match="Additional properties"):
        tasks("resubmit", step.id, "--reason", "typo", "--request", '{"to": "Bob", "x": 1}')
    tasks("resubmit", step.id, "--reason", "typo", "--request", '{"to": "Bob"}')
    (request,) = claimed()
    assert (request.payload, request.key[-2:]) == ({"to": "Bob"}, ":2")
    detail = Event.objects.get(kind="resubmitted").detail
    assert (detail["before"], detail["after"]) == ({"to": "Ada"}, {"to": "Bob"})
    assert detail["new_key"] is True


def test_input_of_a_step_in_doubt_needs_a_statement_to_change():
    step = in_error()
    Step.objects.filter(id=step.id).update(outcome="unknown", in_doubt=True)
    with pytest.raises(CommandError, match="the input cannot be changed"):
        tasks("resubmit", step.id, "--reason", "typo", "--request", '{"to": "Bob"}')
    Step.objects.filter(id=step.id).update(error_code="key_forgotten")
    with pytest.raises(CommandError, match="no longer remembers"):
        tasks("resubmit", step.id, "--reason", "again")
    tasks("resubmit", step.id, "--reason", "asked them by phone", "--nothing-done")
    (request,) = claimed()
    assert request.key.endswith(":2")


def test_done_by_hand_continues_with_the_entered_result():
    step = in_error()
    tasks("done", step.id, "--reason", "by phone", "--result", '{"id": "by-hand"}')
    (request,) = claimed()
    assert request.payload["heard"] == "by-hand"
    assert step_of(step.task).process_state == "processed"


@pytest.mark.parametrize(
    "target", [["--agent", "greeter"], ["--step", "greet/hello"], ["--everything"], ["--task"]]
)
def test_hold_and_release_at_each_level(target):
    task = new_task()
    if target == ["--task"]:
        target = ["--task", task.id]
    made = tasks("hold", *target, "--reason", "wait", "--actor", "olga")
    assert claimed() == []
    with pytest.raises(CommandError, match="already on hold"):
        tasks("hold", *target, "--reason", "wait")
    assert tasks("holds")[0]["actor"] == "olga"
    tasks("release", made["hold"], "--reason", "go")
    unpark()
    assert len(claimed()) == 1


def test_open_breaker_is_probed_and_an_unknown_agent_is_refused():
    Gate.objects.filter(agent="greeter").update(state="open", probe_at="2099-01-01T00:00:00Z")
    tasks("probe", "greeter", "--reason", "it is back", "--actor", "olga")
    new_task()
    assert len(claimed()) == 1
    assert Event.objects.get(kind="probe").actor == "olga"
    with pytest.raises(CommandError, match="waits neither"):
        tasks("probe", "greeter", "--reason", "again")
    for act in (["probe", "greter"], ["hold", "--agent", "greter"]):
        with pytest.raises(CommandError, match="did you mean 'greeter'"):
            tasks(*act, "--reason", "why")
