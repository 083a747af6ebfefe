"""Levels that are read from the inventory: what is kept, in which order, and what fails."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from django.utils import timezone

from orchestration import registry
from orchestration.housekeeping import agent_rows
from orchestration.models import Alert, RetentionPolicy, Task
from orchestration.testing.outcomes import done, rejected
from orchestration.transitions.holds import hold
from orders.agents.inventory import Inventory
from orders.models import StockLevel
from orders.stock import levels
from orders.stock.workflows import SCHEDULE
from tests.support.sandbox import send
from tests.support.stock import answering, on_shelves, read, reserve, set_stock

pytestmark = pytest.mark.django_db
NONE = done(at=1.0, sku="", after="", next="", levels={})


def read_now(run, name="now"):
    levels.begin_reading(name)
    run.go()
    return run.task(levels.READING, name)


@pytest.fixture
def scheduled(run, monkeypatch):
    """The schedule, which the settings of tests leave out."""
    monkeypatch.setitem(registry.schedules, SCHEDULE.name, SCHEDULE)
    agent_rows.ensure_declared()


def test_levels_are_kept_by_warehouse_and_those_of_unknown_products_are_not(run, port):
    reserve(port, "sku-0", 3)
    before = timezone.now()
    assert read_now(run).state == "processed"
    assert on_shelves() == [
        ("sku-0", "main", 12, 3),
        ("sku-0", "south", 4, 0),
        ("sku-1", "main", 2, 0),
    ]
    assert StockLevel.objects.filter(read_at__gte=before).count() == 3


def test_what_changed_is_changed_and_what_is_gone_is_removed(run, port):
    read_now(run)
    send(port, "DELETE", "/ledger")
    set_stock(port, sku_0={"south": 1}, sku_2=7)
    read_now(run, "later")
    assert on_shelves() == [("sku-0", "south", 1, 0), ("sku-2", "main", 7, 0)]


def test_many_products_are_read_page_by_page(run, port, monkeypatch):
    monkeypatch.setattr("orders.agents.inventory.PAGE", 2)
    read(1.0, {"sku-2": {"main": [5, 0]}})  # the last page says that it is gone
    set_stock(port, a=1, b=1, c=1)
    read_now(run)
    assert [(sku, units) for sku, _, units, _ in on_shelves()] == [
        ("sku-0", 15), ("sku-0", 4), ("sku-1", 2),
    ]  # fmt: skip
    assert sorted(Task.objects.values_list("reference", flat=True)) == ["now", "now#2", "now#3"]


def test_older_levels_change_nothing_however_late_they_come():
    read(20.0, {"sku-0": {"main": [9, 0]}})
    read(10.0, {"sku-0": {"main": [1, 1], "south": [1, 1]}, "sku-1": {"main": [3, 0]}})
    assert on_shelves() == [("sku-0", "main", 9, 0), ("sku-1", "main", 3, 0)]
    read(10.0, {})
    assert len(on_shelves()) == 2


def test_levels_of_one_product_leave_the_others_alone():
    read(1.0, {"sku-0": {"main": [9, 0], "south": [1, 0]}, "sku-1": {"main": [3, 0]}})
    read(2.0, {"sku-0": {"main": [8, 0]}}, sku="sku-0")
    assert on_shelves() == [("sku-0", "main", 8, 0), ("sku-1", "main", 3, 0)]


def test_page_leaves_what_is_before_and_after_it_alone():
    known = {f"sku-{number}": {"main": [1, 0]} for number in range(3)}
    read(1.0, known)
    read(2.0, {}, after="sku-0", next="sku-1")
    assert [sku for sku, *_ in on_shelves()] == ["sku-0", "sku-2"]


@pytest.mark.django_db(transaction=True)
def test_two_that_write_at_once_leave_the_newest():
    """Fails without the lock: they wait for each other's rows, or add a warehouse that is gone."""

    def keep(at):
        try:
            level = {"main": [at, 0]} if at % 2 else {"south": [at, 0]}
            read(float(at), {"sku-0": level})
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(keep, range(1, 41)))
    assert on_shelves() == [("sku-0", "south", 40, 0)]


def test_schedule_has_them_read_every_few_minutes_and_tasks_are_kept_for_a_week(run, scheduled):
    run.script("inventory.levels", NONE)
    run.wait(SCHEDULE.every * 3)
    tasks = Task.objects.filter(workflow=levels.READING)
    assert set(tasks.values_list("state", flat=True)) == {"processed"}
    assert tasks.count() == len(run.calls("inventory.levels")) == 3
    assert RetentionPolicy.objects.get(workflow=levels.READING).keep_days == 7


@pytest.mark.parametrize("code", ["not_read", "forbidden"])
def test_inventory_that_says_no_levels_calls_no_person(run, scheduled, code):
    run.script("inventory.levels", rejected(code))
    run.wait(SCHEDULE.every * 3)
    assert set(Task.objects.values_list("state", flat=True)) == {"processed"}
    assert not Alert.objects.exists()
    assert not StockLevel.objects.exists()


FAULTS = [
    {"fault": "status", "status": 404},
    {"fault": "status", "status": 500},
    {"fault": "reject", "status": 403, "code": "forbidden"},
    {"fault": "reset"},
    {"fault": "wrong_schema"},
    {"fault": "timeout", "seconds": 3},
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: "-".join(map(str, fault.values())))
def test_question_that_fails_is_passed_over_and_the_next_is_asked(run, port, fault):
    read_now(run)
    old = StockLevel.objects.first().read_at
    run.policy("inventory", call_timeout=1.0)
    faults = [{"partner": "inventory", "action": "read", **fault}]
    status, answer = send(port, "PUT", "/faults", body={"faults": faults})
    assert status == 200, answer
    step = read_now(run, "later").step("read")
    assert (step.state, step.error_code) == ("skipped", "not_read")
    assert StockLevel.objects.first().read_at == old
    send(port, "DELETE", "/faults")
    read_now(run, "last")
    assert StockLevel.objects.first().read_at > old
    assert not Alert.objects.exists()


ODD = [
    {"levels": {"sku-0": {"main": [1]}}},
    {"levels": {"sku-0": {"main": [1, 10**13]}}},
    {"levels": {"sku-0": {"m" * 61: [1, 0]}}},
    {"levels": {"sku-0": 7}},
    {"levels": {}, "next": ""},  # it would be asked without end
]


@pytest.mark.parametrize("answer", ODD, ids=str)
def test_answer_that_is_none_is_passed_over(run, monkeypatch, answer):
    run.real("inventory")
    with answering(answer) as address:
        monkeypatch.setattr(Inventory, "base_url", address)
        assert read_now(run).step("read").error_code == "not_read"
    assert not StockLevel.objects.exists()
    assert not Alert.objects.exists()


def test_outage_has_one_task_waiting(run, scheduled):
    run.script("inventory.levels", NONE)
    hold(agent="inventory", actor="ann", reason="it is being moved")
    run.wait(SCHEDULE.every * 3)
    assert Task.objects.filter(workflow=levels.READING).count() == 1
    assert run.calls("inventory.levels") == []


def test_levels_are_as_of_the_question_and_not_of_the_answer(run, port):
    fault = {"partner": "inventory", "action": "read", "fault": "latency", "seconds": 0.5}
    status, _ = send(port, "PUT", "/faults", body={"faults": [fault]})
    assert status == 200
    read_now(run)
    assert time.time() - StockLevel.objects.first().read_at.timestamp() >= 0.5
