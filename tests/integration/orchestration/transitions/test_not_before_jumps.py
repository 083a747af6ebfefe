"""Steps that wait for their time, beside jumps of the database's clock, and what else moves times."""

from datetime import timedelta

import pytest

from orchestration import registry
from orchestration.database.clock import database_now
from orchestration.decisions.amendment import Amendment
from orchestration.decisions.progress import Refusal
from orchestration.models import JumpedTime, Step, Wait
from orchestration.payloads.placeholders import field
from orchestration.transitions.lateness import end_waits, late_tasks
from orchestration.transitions.locked_task import lock
from orchestration.transitions.resubmit import resubmit, resubmit_all
from orchestration.transitions.settle import finish
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from tests.support.clock_jumps import jump, left, near, shifted
from tests.support.engine import new_task, staff, step_of

pytestmark = pytest.mark.django_db
HOUR = 3600.0


@pytest.fixture(autouse=True)
def _staffed():
    staff()


@pytest.fixture
def waiting(monkeypatch):
    """Return a function that makes a task whose step waits for its time."""

    def make(not_before=300, data=None, **fields):
        greets = {"agent": "greeter", "action": "greet", "request": {"to": "x"}, "undo": None}
        step = Declared(name="remind", not_before=not_before, **(greets | fields))
        monkeypatch.setitem(registry.workflows, "later", Workflow(name="later", steps=[step]))
        task = new_task(workflow="later", data=data or {})
        return step_of(task, "remind")

    return make


def its_wait(step):
    return Wait.objects.get(step=step.id)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR, 90.0, -90.0])
def test_duration_is_as_long_as_before(waiting, seconds):
    step = waiting()
    shifted(Step.objects, seconds, "pending_since")
    shifted(Wait.objects, seconds, "due_at")
    jump(seconds)
    assert left(its_wait(step), "due_at") == near(300)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_duration_that_began_after_the_jump_does_not_move(waiting, seconds):
    step = waiting()
    jump(seconds)
    assert left(its_wait(step), "due_at") == near(300)


@pytest.mark.parametrize("first", [HOUR, -HOUR])
def test_jump_there_and_back_restores_it(waiting, first):
    step = waiting()
    for seconds in (first, -first):
        shifted(Step.objects, seconds, "pending_since")
        shifted(Wait.objects, seconds, "due_at")
        jump(seconds)
    assert left(its_wait(step), "due_at") == near(300)


@pytest.mark.parametrize("first", [HOUR, -HOUR])
def test_wait_for_a_result_is_as_long_as_before_after_each_of_two_jumps(monkeypatch, first):
    review = Declared(name="review", person="fraud", ends_within=300.0, remind=[100.0])
    monkeypatch.setitem(registry.workflows, "asked", Workflow(name="asked", steps=[review]))
    step = step_of(new_task(workflow="asked"), "review")
    for seconds in (first, -first):  # at once, so that it began within the time between two looks
        shifted(Wait.objects, seconds, "awaited_at", "ends_by", "due_at")
        jump(seconds)
        wait = its_wait(step)
        assert [left(wait, name) for name in ("awaited_at", "due_at", "ends_by")] == near(
            [0, 100, 300]
        )


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_time_of_the_calendar_stays(waiting, seconds):
    at = database_now() + timedelta(days=2)
    step = waiting(field("at"), {"at": at.isoformat()})
    shifted(Step.objects, 2 * HOUR, "pending_since")  # it was written before the jump
    jump(seconds)
    assert its_wait(step).due_at == at
    assert not JumpedTime.objects.exists()


def test_step_does_not_begin_by_a_jump_that_has_yet_to_move_its_time(waiting):
    step = waiting()
    shifted(Step.objects, HOUR, "pending_since")
    shifted(Wait.objects, HOUR, "due_at")  # the clock went forward: by it, the time has come
    wait = its_wait(step)
    JumpedTime.objects.create(
        kind="wait", key=str(wait.id), field="due_at", was=wait.due_at,
        becomes=wait.due_at + timedelta(hours=1),
    )  # fmt: skip
    now = database_now()
    assert not late_tasks(10, now=now)
    assert end_waits([step.task_id], by="supervisor-1", now=now) == 0
    assert step_of(step.task, "remind").process_state == "waiting"


def test_step_begins_once_its_time_has_come_by_the_verified_clock(waiting):
    step = waiting()
    Wait.objects.update(due_at=database_now() - timedelta(seconds=5))
    assert not late_tasks(10, now=database_now() - timedelta(seconds=10))
    now = database_now()
    assert end_waits(late_tasks(10, now=now), by="supervisor-1", now=now) == 1
    assert step_of(step.task, "remind").process_state == "pending"
    assert not Wait.objects.exists()


class TestResubmit:
    """A step whose time was not known, resubmitted by a person or an application."""

    WHO = {"actor": "ann", "reason": "try it"}

    @pytest.fixture
    def failed(self, waiting):
        """Return a function that makes a step of an input that was spoilt since."""

        def make(**fields):
            at = (database_now() + timedelta(days=2)).isoformat()
            step = waiting(field("at"), {"at": at}, **fields)
            step.task.data = {"at": "soon"}
            step.task.save(update_fields=["data"])
            Wait.objects.all().delete()  # as if its turn came now
            assert resubmit(step.id, attempt=0, **self.WHO) is Refusal.NOT_IN_ERROR
            return self.fail(step)

        return make

    def fail(self, step):
        """Have its time looked for again."""
        change = lock([step.task_id])[step.task_id]
        finish([change], by="s")
        step.refresh_from_db()
        assert (step.process_state, step.error_code) == ("error", "invalid_time")
        return step

    def test_begins_now_where_its_time_is_not_known_still(self, failed):
        step = failed()
        assert resubmit(step.id, attempt=0, **self.WHO) is None
        step.refresh_from_db()
        assert (step.process_state, step.run_after) == ("pending", None)

    def test_waits_for_the_time_of_an_amended_input(self, failed):
        step = failed()
        at = database_now() + timedelta(days=3)
        amendment = Amendment(data={"at": at.isoformat()})
        assert resubmit(step.id, attempt=0, amendment=amendment, **self.WHO) is None
        step.refresh_from_db()
        assert step.process_state == "pending"
        assert (step.run_after - at).total_seconds() == near(0)
        shifted(Step.objects, HOUR, "pending_since")
        jump(HOUR)  # it is a date: it does not move
        step.refresh_from_db()
        assert (step.run_after - at).total_seconds() == near(0)

    def test_person_is_not_asked_before_an_amended_time(self, failed):
        step = failed(agent="", action="", person="fraud")
        at = database_now() + timedelta(days=3)
        amendment = Amendment(data={"at": at.isoformat()})
        answer = resubmit(step.id, attempt=0, amendment=amendment, **self.WHO)
        assert answer is Refusal.TOO_EARLY
        step.task.refresh_from_db()
        assert (step_of(step.task, "remind").process_state, step.task.data) == (
            "error",
            {"at": "soon"},
        )

    def test_with_many_others_it_is_refused(self, failed):
        step = failed()
        answers = resubmit_all({step.id: 0}, operation=None, **self.WHO)
        assert answers == {step.id: Refusal.NO_TIME}
        assert step_of(step.task, "remind").process_state == "error"
