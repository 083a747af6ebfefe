"""A thousand children of one step cost a hundred times what ten do: none of them reads the others."""

import pytest

from orchestration import conf, scheduler
from orchestration.models import Join
from orchestration.states import LOCAL
from orchestration.transitions import joined
from orchestration.transitions.replies import record
from tests.support import children
from tests.support.engine import new_task, reply_to
from tests.support.plans import analyse, spent

pytestmark = pytest.mark.django_db
FEW, MANY = 10, 1_000
TABLES = ("orchestration_task", "orchestration_step", "orchestration_join")


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    children.declare(monkeypatch)


def test_end_of_a_child_costs_the_same_however_many_there_are():
    cost = {}
    for count in (FEW, MANY):
        _, requests = children.begun(count)
        analyse(*TABLES)
        cost[count] = spent(lambda requests=requests: record([reply_to(requests[0])]))
    (few, few_pages), (many, many_pages) = cost[FEW], cost[MANY]
    assert many == few
    assert many_pages < few_pages + 30


def test_children_are_made_in_batches():
    made = {}
    for count in (FEW, MANY):
        new_task(workflow="order", data={"to": list(range(count))})
        made[count] = spent(lambda: scheduler.run_once("scheduler-1", [], [LOCAL]))[0]
        scheduler.run_once("scheduler-1", [], [LOCAL])
    assert made[MANY] < made[FEW] + 10 * MANY / conf.BATCH_SIZE


def test_look_at_children_that_go_on_reads_none_of_them():
    cost = {}
    for count in (FEW, MANY):
        order, _ = children.begun(count)
        Join.objects.create(step_id=order.steps.get().id, task=order)
        analyse(*TABLES)
        cost[count] = spent(lambda order=order: joined.join([order.id]))
    (few, few_pages), (many, many_pages) = cost[FEW], cost[MANY]
    assert many == few
    assert many_pages < few_pages + 50  # of the list of items
