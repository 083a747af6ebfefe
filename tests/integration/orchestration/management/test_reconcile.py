"""`manage.py reconcile`: what a restore has forgotten is found, and settled under the same keys."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from orchestration import registry, scheduler
from orchestration.agents.actions import action
from orchestration.agents.base import Agent
from orchestration.agents.errors import Transient
from orchestration.agents.service_ledger import LedgerEntry
from orchestration.models import Alert, Step, Submission, Task, Worker
from orchestration.models.fields import time_ordered_id
from orchestration.states import LOCAL
from orchestration.transitions.replies import record
from orchestration.transitions.undo import undo
from tests.support import children, undo_workflows
from tests.support.engine import (
    claimed,
    in_error,
    new_task,
    reply_to,
    run_to_end,
    sent,
    states,
    step_of,
)
from tests.support.violations import violations

pytestmark = pytest.mark.django_db


class Greeter(Agent):
    """A service with a ledger, which takes back what it is asked to."""

    name = "greeter"
    entries: list[LedgerEntry] = []
    down = False

    def ledger(self):
        return list(self.entries)

    @action
    async def greet(self, call):
        raise AssertionError("nothing is done anew")

    @action
    async def take_back(self, call):
        if Greeter.down:
            raise Transient("down", "it is down")
        undone = LedgerEntry(
            key=call.key, reference=call.reference, kind="undo", detail=call.payload
        )
        Greeter.entries.append(undone)
        return {"effect": "undo"}


@pytest.fixture(autouse=True)
def service(monkeypatch):
    monkeypatch.setitem(registry.agents, "greeter", Greeter)
    for name in set(registry.agents) - {"greeter"}:
        monkeypatch.delitem(registry.agents, name)
    monkeypatch.setattr(Greeter, "entries", [])
    monkeypatch.setattr(Greeter, "down", False)


def did(
    task, step="hello", generation=1, *, direction="do", kind="greet", reference="7", result=None
):
    key = f"{getattr(task, 'id', task)}:{step}:{direction}:{generation}"
    Greeter.entries.append(LedgerEntry(key=key, reference=reference, kind=kind, result=result))


def reconcile(*options, ago=timedelta(0)):
    """Return the exit code and the result."""
    out = StringIO()
    when = (datetime.now(UTC) - ago).isoformat()
    try:
        call_command(
            "reconcile", "--json", "--restored-to", when, *options, stdout=out, stderr=StringIO()
        )
    except SystemExit as ended:
        return ended.code, _result(out)
    return 0, _result(out)


def _result(out):
    text = out.getvalue()
    return json.loads(text[text.index("{\n") :])


def blamed():
    rows = type("Rows", (), {"ledger": {"greeter": list(Greeter.entries)}})
    return {(breach.invariant, breach.problem) for breach in violations(rows)}


def test_step_done_since_is_repeated_under_its_key():
    task = new_task("7")
    did(task)
    assert reconcile()[0] == 1
    assert not step_of(task).in_doubt  # it was only a report
    assert reconcile("--act")[0] == 0
    step = step_of(task)
    assert step.in_doubt
    assert step.keyed_at is not None  # its key is as old as the restore
    assert reconcile() == (0, reconcile()[1])
    (request,) = claimed()
    assert (request.key, request.in_doubt) == (f"{task.id}:hello:do:1", True)
    record([reply_to(request)])
    did(task, "again")
    run_to_end(task)
    assert task.state == "processed"
    assert blamed() == set()


def test_step_takes_on_the_key_under_which_it_was_done():
    step = in_error(new_task("7"))
    did(step.task, generation=3)
    assert reconcile("--act")[0] == 0
    (request,) = claimed()
    assert (request.key[-2:], request.in_doubt) == (":3", True)
    record([reply_to(request)])
    did(step.task, "again")
    run_to_end(step.task)
    assert blamed() == set()


def test_task_undone_since_is_undone_with_all_that_was_done():
    task = new_task("7")
    did(task)
    did(task, "again")
    did(task, "again", direction="undo", kind="none")
    code, report = reconcile("--act")
    assert (code, report["undone"]) == (0, [str(task.id)])
    (settled,) = claimed()
    assert (settled.key, settled.mode) == (f"{task.id}:hello:do:1", "settle")
    record([reply_to(settled)])
    (later,) = claimed()
    assert (later.key, later.mode) == (f"{task.id}:again:do:1", "settle")
    record([reply_to(later)])
    run_to_end(task)
    assert task.state == "undone"
    assert set(Step.objects.filter(task=task).values_list("process_state", flat=True)) == {
        "processed"
    }


def test_lost_task_is_taken_back_once_and_raises_an_alert():
    lost, old = time_ordered_id(), "01900000-0000-7000-8000-000000000000"
    did(lost)
    did(lost, "again")
    did(old)  # removed long ago, and not lost
    code, report = reconcile()
    assert (code, [task["id"] for task in report["lost"]]) == (1, [str(lost)])
    assert reconcile("--act")[0] == 0
    undone = [entry.key for entry in Greeter.entries if entry.kind == "undo"]
    assert undone == [f"{lost}:again:undo:1", f"{lost}:hello:undo:1"]
    assert Alert.objects.get().fingerprint == f"late_effect/{lost}/lost"
    assert reconcile("--act")[0] == 0
    assert len(Greeter.entries) == 5


@pytest.mark.parametrize("background", [False, True])
def test_lost_letter_is_passed_over_if_it_serves_another_task(monkeypatch, background):
    forever = replace(undo_workflows.WORKFLOWS["forever"], background=background)
    monkeypatch.setitem(registry.workflows, "forever", forever)
    did(time_ordered_id(), "room")
    assert reconcile()[0] == (0 if background else 1)
    assert reconcile("--act")[0] == 0
    assert Alert.objects.exists() == (not background)


@pytest.mark.parametrize("result", [{"id": "r1"}, None])
def test_undo_by_result_takes_it_from_the_ledger(monkeypatch, result):
    monkeypatch.setitem(registry.workflows, "by_result", undo_workflows.WORKFLOWS["by_result"])
    did(time_ordered_id(), "room", result=result)
    assert reconcile("--act")[0] == 0
    undone = [entry.detail for entry in Greeter.entries if entry.kind == "undo"]
    assert undone == ([result] if result else [])
    assert ("What stays: room" in Alert.objects.get().detail) == (result is None)


def test_what_cannot_be_taken_back_is_left_and_tried_again():
    did(lost := time_ordered_id())
    Greeter.down = True
    code, report = reconcile("--act")
    assert code == 1
    assert "it is down" in report["left"][0]
    assert Alert.objects.get().severity == "critical"
    Greeter.down = False
    assert reconcile("--act")[0] == 0
    still = Alert.objects.filter(closed_at=None)
    assert [alert.fingerprint for alert in still] == [f"late_effect/{lost}/lost"]


def test_submission_that_is_here_again_gets_its_tasks_id():
    lost = time_ordered_id()
    did(lost, reference="8")
    Submission.objects.create(workflow="greet", reference="8", data={"name": "Ada"})
    assert reconcile("--act")[0] == 0
    assert Task.objects.get(reference="8").id == lost
    assert not Submission.objects.exists()
    (request,) = claimed()
    assert (request.key, request.in_doubt) == (f"{lost}:hello:do:1", True)


def test_steps_of_an_agent_without_a_ledger_are_in_doubt(monkeypatch):
    monkeypatch.setattr(Greeter, "ledger", Agent.ledger)
    task = new_task("7")
    code, report = reconcile("--act")
    assert (code, report["unlisted"]) == (0, ["greeter"])
    assert set(Step.objects.filter(task=task).values_list("in_doubt", flat=True)) == {True}
    assert states(task) == {"hello": "pending", "again": "waiting"}


def test_moment_that_is_not_of_the_restore_is_refused():
    run_to_end(new_task("7"))
    assert reconcile("--act")[0] == 0
    with pytest.raises(CommandError, match="not the moment of the restore"):
        reconcile("--act", ago=timedelta(hours=1))
    assert reconcile("--act", "--started", ago=timedelta(hours=1))[0] == 0


def test_it_refuses_while_workers_run_and_without_a_moment():
    with pytest.raises(CommandError, match="give --restored-to"):
        call_command("reconcile")
    Worker.objects.create(instance=str(uuid4()), queue="greeter", host="here", pid=1)
    with pytest.raises(CommandError, match="Workers run"):
        reconcile()


class TestChildren:
    """Children that were made after the moment of the restore, and are made again."""

    @pytest.fixture(autouse=True)
    def order(self, monkeypatch):
        """Return a task without its two children, which the service knows."""
        children.declare(monkeypatch)
        order = new_task("o/1", workflow="order", data={"to": [0, 1]})
        with transaction.atomic():
            scheduler.run_once("scheduler-0", [], [LOCAL])
            for request in sent():
                did(request.task, "pack", reference=request.reference)
            transaction.set_rollback(True)
        assert not Task.objects.filter(parent__task=order).exists()
        return order

    def test_children_get_the_ids_and_keys_that_they_had(self, order):
        before = [entry.key for entry in Greeter.entries]
        assert reconcile("--act", ago=timedelta(minutes=-5))[0] == 0
        scheduler.run_once("scheduler-0", [], [LOCAL])
        assert sorted(request.key for request in sent()) == sorted(before)

    @pytest.mark.parametrize("known", [True, False])
    def test_children_of_a_task_that_is_here_or_comes_again_are_not_taken_back(
        self, monkeypatch, order, known
    ):
        if not known:
            own, parcels = (registry.workflows[name].steps[0] for name in ("parcel", "order"))
            workflow = replace(registry.workflows["order"], steps=[own, parcels])
            monkeypatch.setitem(registry.workflows, "order", workflow)
            did(order, own.name, reference="o/1")
            Submission.objects.create(workflow="order", reference="o/1", data={"to": [0, 1]})
            Task.objects.filter(id=order.id).delete()
        code, report = reconcile("--act")
        assert (code, report["lost"]) == (0, [])
        assert len(report["children"]) == 2
        assert not [entry for entry in Greeter.entries if entry.kind == "undo"]
        assert not Alert.objects.exists()

    @pytest.mark.parametrize("later", [{"direction": "undo", "kind": "none"}, {"generation": 2}])
    def test_child_that_changed_since_is_left_for_a_person(self, later):
        first = Greeter.entries[0]
        did(first.key.split(":")[0], "pack", reference=first.reference, **later)
        code, report = reconcile("--act", ago=timedelta(minutes=-5))
        assert code == 1
        (left,) = report["left"]
        assert left.startswith("o/1/parcels/0: its steps were undone or resubmitted meanwhile")

    def test_children_of_a_task_that_is_undone_are_taken_back(self, order):
        undo(order.id, actor="ann", reason="no more")
        code, report = reconcile("--act", ago=timedelta(minutes=-5))
        assert (code, len(report["lost"])) == (0, 2)
        assert len([entry for entry in Greeter.entries if entry.kind == "undo"]) == 2
