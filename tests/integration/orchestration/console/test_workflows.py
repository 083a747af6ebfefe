"""The workflows' page: the steps of each, and how many tasks are at each step."""

import pytest

from orchestration.models import StepPolicy
from orchestration.transitions.holds import hold
from orchestration.transitions.undo import undo
from tests.support.engine import claimed, in_error, new_task, run_to_end
from tests.support.operators import browser, person
from tests.support.page import page, query_count

pytestmark = pytest.mark.django_db
ADDRESS = "/ops/workflows/"
STEP, AFTER, ACTION, POLICY, PENDING, PROCESSING, _AWAITING, ERROR, UNDOING, ACTS = range(10)


@pytest.fixture
def client():
    return browser(person("ann", "operate", "see_personal", "hold"))


def cells(client, step, workflow="greet") -> list[str]:
    """Return the texts of a step's row."""
    section = page(client.get(ADDRESS)).only(f"#workflow-{workflow}")
    return [cell.text for cell in section.only(f'[data-step="{step}"]').cells()]


def test_workflows_are_drawn_with_counts_by_step(client):
    done = new_task()
    run_to_end(done)
    in_error(new_task())
    undo(done.id, actor="ann", reason="no")
    new_task()
    claimed()
    new_task()
    new_task()
    shown = page(client.get(ADDRESS))
    drawing = shown.only("#workflow-greet").only("svg")
    assert drawing.texts(".name") == ["hello", "again"]
    assert drawing.only("g.error").only(".counts").text == "1 in error, 1 at work …"
    hello = cells(client, "hello")
    assert hello[PENDING : UNDOING + 1] == ["2", "1", "0", "1", "0"]
    assert "10 s, up to 2 calls. After 5 failed attempts: error." in hello[POLICY]
    again = cells(client, "again")
    assert again[AFTER] == "hello"
    assert again[ACTION] == "greeter.greet undone by greeter.take_back"
    names = [section["id"].removeprefix("workflow-") for section in shown.all("section[id]")]
    # background tasks come last
    background = [
        "canary",
        "read_stock",
        "renew_subscriptions",
        "send_gift_cards",
        "send_parcel",
        "tell_customer",
    ]
    assert names[-10:] == [
        "process_order",
        "refund_order",
        "remove_lines",
        "return_order",
        *background,
    ]


def test_step_with_thresholds_of_its_own_shows_these(client):
    own = StepPolicy.objects.filter(workflow="greet", step="again")
    own.update(failure_threshold=1, on_rejection="undo")
    assert "After 1 failed attempt: error. On rejection: undo." in cells(client, "again")[POLICY]
    assert "After 5 failed attempts" in cells(client, "hello")[POLICY]
    section = page(client.get(ADDRESS)).only("#workflow-greet")
    named = ["Of this step alone: failure threshold, on rejection."]
    assert section.texts("[data-own]") == named


def test_policies_of_steps_are_a_click_away_for_those_who_may_change_them(client):
    address = "/admin/orchestration/steppolicy/?workflow=greet"
    admin = browser(person("ada", "operate", "change_steppolicy", "view_steppolicy", is_staff=True))
    assert address in [link["href"] for link in page(admin.get(ADDRESS)).all("a[href]")]
    assert admin.get(address).status_code == 200
    assert address not in client.get(ADDRESS).text


def test_irreversible_step_shows_its_reason(client):
    action = cells(client, "send_confirmation", "process_order")[ACTION]
    assert action.startswith("notification.send irreversible the confirmation is in the customer")


def test_held_step_names_its_user(client):
    held = hold(workflow="greet", step="hello", actor="olga", reason="wrong words")
    assert cells(client, "hello")[STEP] == "hello held by olga. Reason: wrong words"
    viewer = browser(person("vic", "operate"))
    assert cells(viewer, "hello")[STEP] == "hello held by olga. Reason: [hidden]"
    section = page(client.get(ADDRESS)).only("#workflow-greet")
    links = {
        name: section.only(f'[data-step="{name}"]').cells()[ACTS].only("a")["href"]
        for name in ("hello", "again")
    }
    assert links == {
        "hello": f"/ops/holds/{held.id}/release/", "again": "/ops/holds/new/?step=greet/again",
    }  # fmt: skip
    viewer = page(browser(person("bob", "operate")).get(ADDRESS))
    assert viewer.all('[href^="/ops/holds/"]') == []


def test_queries_are_independent_of_the_number_of_tasks(client):
    none = query_count(client, ADDRESS)
    for _ in range(20):
        new_task()
    in_error(new_task())
    assert query_count(client, ADDRESS) == none


@pytest.mark.parametrize("step", ["address", "report"])
def test_local_step_has_no_agent(client, step):
    assert cells(client, step, "invite")[ACTION] == "local (no agent) no undo needed"
