"""A project's own duty is run, isolated and reported as the engine's are."""

import pytest

from orchestration import registry, supervisor
from orchestration.api import Duty, register_duty
from orchestration.housekeeping import housekeeper
from orchestration.models import Alert, Policy
from tests.support.engine import rested_memory, staff
from tests.support.operators import LEADER

pytestmark = pytest.mark.django_db
FAILING = "system/supervisor/failing/prune carts"


@pytest.fixture(autouse=True)
def _registered_only_here(db, monkeypatch):
    housekeeper.all_duties()
    monkeypatch.setattr(registry, "duties", {})
    staff()
    housekeeper.sweep(LEADER)


def test_duty_runs_while_its_condition_is_true():
    register_duty(
        Duty(
            name="prune carts",
            run=lambda _: Policy.objects.filter(agent="cart").delete()[0],
            counted="pruned",
            due="EXISTS (SELECT FROM orchestration_policy WHERE agent = %(cart)s)",
            parameters=lambda: {"cart": "cart"},
        )
    )
    assert str(housekeeper.sweep(LEADER, rested_memory())) == ""
    Policy.objects.create(agent="cart")
    assert str(housekeeper.sweep(LEADER, rested_memory())) == "1 pruned"
    assert str(housekeeper.sweep(LEADER, rested_memory())) == ""


def test_duty_runs_after_its_interval_whether_due_or_not():
    ran = []
    memory = rested_memory()
    register_duty(Duty(name="prune carts", run=ran.append, every=60.0))
    for _ in range(2):
        housekeeper.sweep(LEADER, memory)
    assert len(ran) == 1
    memory.next_at["prune carts"] = 0.0
    housekeeper.sweep(LEADER, memory)
    assert len(ran) == 2


def it_succeeds(fails):
    fails.clear()


def nothing_is_due(_):
    Policy.objects.filter(agent="cart").delete()


@pytest.mark.parametrize("end", [it_succeeds, nothing_is_due])
def test_failing_duty_is_an_alert_until(end):
    fails = [True]
    due = "EXISTS (SELECT FROM orchestration_policy WHERE agent = 'cart')"
    register_duty(Duty(name="prune carts", run=lambda _: 1 / (not fails), due=due))
    Policy.objects.create(agent="cart")
    memory = rested_memory()
    with pytest.raises(ExceptionGroup):
        housekeeper.sweep(LEADER, memory)
    assert Alert.objects.get(fingerprint=FAILING).closed_at is None
    end(fails)
    memory.next_at.clear()
    housekeeper.sweep(LEADER, memory)
    assert Alert.objects.get(fingerprint=FAILING).closed_at


def test_only_what_is_due_runs_also_what_another_duty_has_made_due():
    ran = []

    def order(_):
        ran.append("ordered")
        Policy.objects.create(agent="cart")

    there = "EXISTS (SELECT FROM orchestration_policy WHERE agent = '{}')".format
    for name, run, agent in (
        ("paint carts", lambda _: ran.append("painted"), "colour"),
        ("order carts", order, "greeter"),
        ("make carts", lambda _: ran.append("made"), "cart"),
    ):
        register_duty(Duty(name=name, run=run, due=there(agent)))
    housekeeper.sweep(LEADER, rested_memory())
    assert ran == ["ordered", "made"]


@pytest.mark.django_db(transaction=True)
def test_condition_that_fails_stops_no_duty():
    ran = []
    register_duty(Duty(name="prune carts", run=ran.append, due="no_such_column = 1"))
    with pytest.raises(ExceptionGroup) as failed:
        housekeeper.sweep(LEADER, rested_memory())
    assert [str(error).split("\n")[0] for error in failed.value.exceptions] == [
        'column "no_such_column" does not exist'
    ]
    assert len(ran) == 1


@pytest.mark.parametrize("process", [supervisor, housekeeper])
def test_each_duty_has_a_name_of_its_own(process):
    names = [duty.name for duty in process.DUTIES]
    assert len(names) == len(set(names))
