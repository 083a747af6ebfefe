"""The workflows' page: what each consists of, and where tasks stand."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration.transitions.holds import hold
from orchestration.transitions.undo import undo
from tests.engine import claimed, in_error, new_task, run_to_end
from tests.operators import browser, person, words

pytestmark = pytest.mark.django_db
ADDRESS = "/ops/workflows/"


@pytest.fixture
def client():
    return browser(person("ann", "operate", "hold"))


def test_each_workflow_is_drawn_and_listed_with_who_stands_where(client):
    done = new_task()
    run_to_end(done)
    in_error(new_task())
    undo(done.id, actor="ann", reason="no")
    new_task()
    claimed()
    new_task()
    answer = client.get(ADDRESS)
    page = words(answer)
    assert (
        'aria-label="Diagram of the workflow greet; the table below lists its steps"' in answer.text
    )
    assert "1 in error, 1 at work …" in page
    greet = page.partition("hello greeter.greet ↩")[2]
    assert "again hello greeter.greet undone by greeter.take_back" in greet
    assert "10 s an attempt of 2 calls. 5 failed: error. Refused: error." in greet
    shop = page.partition("process_order")[2]
    assert "irreversible the letter is in the customer" in shop
    assert "inventory.canary" in shop  # what only serves others comes last


def test_a_held_step_says_by_whom(client):
    hold(workflow="greet", step="hello", actor="olga", reason="wrong words")
    page = words(client.get(ADDRESS))
    assert "hello held by olga because: wrong words" in page
    assert "Release hello …" in page
    assert "Hold again …" in page
    assert "Hold" not in words(browser(person("bob", "operate")).get(ADDRESS))


def test_many_tasks_cost_no_more_queries_than_none(client):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(ADDRESS).status_code == 200
        return len(captured)

    none = queries()
    for _ in range(20):
        new_task()
    in_error(new_task())
    assert queries() == none


def test_steps_without_an_agent_say_so(client):
    page = words(client.get(ADDRESS))
    assert "computed here nothing to undo" in page.partition("address")[2]
    assert "report send computed here nothing to undo" in page
