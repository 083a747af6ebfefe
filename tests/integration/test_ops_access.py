"""Who may see and do what below /ops/: every route, every kind of person, every method."""

import pytest
from django.urls import reverse

from orchestration import urls
from orchestration.models import Gate
from orchestration.queries import undo_preview
from orchestration.transitions import hold
from tests.engine import in_error, new_task
from tests.operators import browser, person

pytestmark = pytest.mark.django_db

PEOPLE = ["anonymous", "stranger", "operator", "resubmitter", "superuser"]
LOGIN, NO, OK, METHOD, DONE = 302, 403, 200, 405, 303
METHODS = ["get", "head", "post", "put", "patch", "delete"]

# What each person gets, in the order of PEOPLE; a method that a route does not know is a 405 for
# everybody, and tells nothing.
LOOK = [LOGIN, NO, OK, OK, OK]
ACT = [LOGIN, NO, NO, DONE, DONE]
NEVER = [METHOD] * 5
# of these people, only the superuser may do more than look and resubmit
RARE = [LOGIN, NO, NO, NO, OK]
RARELY = [LOGIN, NO, NO, NO, DONE]
FORM = {"get": RARE, "head": RARE, "post": RARELY}
TABLE = {
    "overview": {"get": LOOK, "head": LOOK},
    "tasks": {"get": LOOK, "head": LOOK},
    "task": {"get": LOOK, "head": LOOK},
    "resubmit": {"post": ACT},
    "change": FORM,
    "by_hand": FORM,
    "undo": FORM,
    "hold": FORM,
    "release": FORM,
    "probe": FORM,
    "acknowledge": {"post": RARELY},
    "agents": {"get": LOOK, "head": LOOK},
    "system": {"get": LOOK, "head": LOOK},
    "workflows": {"get": LOOK, "head": LOOK},
}
AFTER = {"resubmit": "pending", "change": "pending", "by_hand": "skipped", "undo": "cancelled"}


def client_of(who):
    if who == "anonymous":
        return browser()
    permissions = {"operator": ["operate"], "resubmitter": ["operate", "resubmit"]}
    return browser(person("pat", *permissions.get(who, ()), is_superuser=who == "superuser"))


def test_every_route_has_a_row():
    assert {getattr(pattern, "name", None) for pattern in urls.urlpatterns} == set(TABLE)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("route", TABLE)
@pytest.mark.parametrize("who", PEOPLE)
def test_the_table_holds(who, route, method):
    step = in_error(new_task("t-1"))
    held = hold(actor="bob", reason="wait", task=new_task("t-2").id)
    Gate.objects.filter(agent="greeter").update(state="shut", probe_at="2099-01-01T00:00:00Z")
    ids: dict[str, list[object]] = {
        **{name: [step.task_id] for name in ("task", "undo")},
        **{name: [step.id] for name in ("resubmit", "change", "by_hand")},
        "release": [held.id],
        "probe": ["greeter"],
        "acknowledge": [step.alert_id],
    }
    address = reverse(f"ops:{route}", args=ids.get(route, []))
    address += "?agent=greeter" if route == "hold" else ""
    data = None
    if method == "post":
        data = {"attempt": 1, "reason": "it is repaired", "value.to": "Ada", "value": '{"id": "1"}'}
        data["seen"] = undo_preview(step.task_id)["seen"]
    response = getattr(client_of(who), method)(address, data)
    expected = TABLE[route].get(method, NEVER)[PEOPLE.index(who)]
    assert response.status_code == expected
    step.refresh_from_db()
    assert step.process_state == (AFTER.get(route, "error") if expected == DONE else "error")
    if expected == LOGIN:
        assert response["Location"].startswith("/login/?next=/ops/")
    if expected == NO and method != "head":
        assert "lacks the permission" in response.text
        assert "t-1" not in response.text


def test_resubmit_alone_is_not_enough():
    step = in_error()
    client = browser(person("pat", "resubmit"))
    address = reverse("ops:resubmit", args=[step.id])
    assert client.post(address, {"attempt": 1, "reason": "why not"}).status_code == NO


def test_the_form_is_only_there_for_those_who_may_use_it():
    step = in_error()
    address = reverse("ops:task", args=[step.task_id])
    form = f'action="{reverse("ops:resubmit", args=[step.id])}"'
    assert form in browser(person("ann", "operate", "resubmit")).get(address).text
    assert form not in browser(person("bob", "operate")).get(address).text


def test_a_form_without_its_token_is_refused():
    from django.test import Client

    step = in_error()
    client = Client(enforce_csrf_checks=True)
    client.force_login(
        person("ann", "operate", "resubmit"), backend="django.contrib.auth.backends.ModelBackend"
    )
    response = client.post(reverse("ops:resubmit", args=[step.id]), {"attempt": 1, "reason": "x"})
    assert response.status_code == NO
    step.refresh_from_db()
    assert step.process_state == "error"


def test_a_poll_after_the_session_ended_reloads_the_page():
    response = browser().get("/ops/?seen=abc", headers={"HX-Request": "true"})
    assert (response.status_code, response["HX-Refresh"]) == (204, "true")


@pytest.mark.parametrize(
    "path",
    [
        "/ops/tasks/00000000-0000-0000-0000-000000000000/",
        "/ops/tasks/nonsense/",
        "/ops/nothing/",
    ],
)
def test_what_is_not_there_is_a_404(path):
    assert browser(person("ann", "operate")).get(path).status_code == 404


@pytest.mark.parametrize("number", ["0", "999999", "9" * 40])
def test_a_step_that_is_not_there_is_a_404(number):
    client = browser(person("ann", "operate", "resubmit"))
    response = client.post(f"/ops/steps/{number}/resubmit/", {"attempt": 1, "reason": "x"})
    assert response.status_code == 404
