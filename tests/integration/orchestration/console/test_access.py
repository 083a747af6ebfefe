"""The permissions below /ops/: every route, every role, every method."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Group, Permission
from django.urls import resolve, reverse

from orchestration import api, registry
from orchestration.alerting.alerts import LATE_EFFECT, raise_alert
from orchestration.applications.by_hand import new_reference
from orchestration.console import urls
from orchestration.console.views.amend import version
from orchestration.models import Gate, Incident, Policy, SavedView, Schedule, Step, Submission
from orchestration.models.alert import Severity
from orchestration.models.fields import DatabaseNow
from orchestration.operations.undo_preview import undo_preview
from orchestration.people.roles import ROLES
from orchestration.transitions.holds import hold
from tests.support.engine import claimed, in_error, new_task, step_of, without_triggers
from tests.support.operations import standing
from tests.support.operators import browser, fail, person
from tests.support.page import page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_schedules")]

PEOPLE = ["anonymous", "stranger", "viewer", "operator", "lead", "admin", "superuser"]
METHODS = ["get", "head", "post", "put", "patch", "delete"]
LOGIN, NO, OK, METHOD, DONE = 302, 403, 200, 405, 303


@dataclass
class World:
    """The objects that the routes name; `who` acts."""

    who: Any
    step: Step

    @property
    def view(self):
        return SavedView.objects.create(owner=self.who, name="mine", query="state:error")

    @property
    def held(self):
        return hold(actor="bob", reason="wait", task=new_task("t-2").id)


def late_effect(step) -> int:
    """Raise the alert of a step's late effect; return its id."""
    return raise_alert(
        f"{LATE_EFFECT}{step.task_id}/{step.name}", severity=Severity.CRITICAL, title="late"
    )


def nothing(_world) -> Any:
    return []


@dataclass
class Route:
    """The least role that may use each method; a role includes the rights of lesser ones.

    `args` and `data` are made from the world; `after` is the state of the failed step after the
    permitted action.
    """

    get: str = ""
    post: str = ""
    args: Callable[[World], Any] = nothing
    data: Callable[[World], Any] = field(default=lambda _world: {})
    query: str = ""
    after: str = "error"

    def least(self, method):
        return {"get": self.get, "head": self.get, "post": self.post}.get(method, "")


# A row for each address of the dashboard. A method that a route does not know is a 405 for
# every user, with no data.
WHY = {"attempt": 1, "reason": "it is repaired"}


def admin():
    return person("root", is_superuser=True)


def of_task(world):
    return [world.step.task_id]


def of_step(world):
    return [world.step.id]


def an_awaiting_step(_world):
    step = step_of(new_task())
    with without_triggers():
        Step.objects.filter(id=step.id).update(process_state="awaiting", attempt=1)
    return [step.id]


def operation(state):
    """Return a maker of a bulk operation in a state, which holds the task."""
    return lambda world: [standing(world.step.task, state).id]


def of_incident(world):
    return [world.step.incident_id]


def an_incident(**fields):
    """Return a maker of an incident that affects no task."""
    return lambda _world: [
        Incident.objects.create(fingerprint="v1-x", version=1, title="calm", **fields).id
    ]


def a_dead_letter(_world):
    Submission.objects.create(
        workflow="greet", reference="t-9", data={"name": "Ada-of-Bath"}, refused_at=DatabaseNow(),
        reason="the guest Ada-of-Bath is unknown",
    )  # fmt: skip
    return []


def a_submission(_world):
    Submission.objects.create(workflow="greet", reference="hand-1", data={"name": "Ada"})
    return ["greet", "hand-1"]


def a_schedule(*, paused=False):
    api.schedule("nightly", workflow="greet", data={"name": "Ada"}, cron="0 2 * * *")
    row = Schedule.objects.get()
    row.paused = paused
    row.save()
    return [row.id]


def seen(world):
    return {"seen": world.step.incident.events.latest("id").id}


TABLE = {
    "overview": Route(get="viewer"),
    "incidents": Route(get="viewer"),
    "incident": Route(get="viewer", args=of_incident),
    "incident_acknowledge": Route(post="operator", args=of_incident, data=seen),
    "incident_assign": Route(
        post="operator", args=of_incident, data=lambda world: {**seen(world), "to": admin().id}
    ),
    "incident_note": Route(post="operator", args=of_incident, data=lambda _: {"text": "bad"}),
    "incident_mute": Route(
        post="operator", args=of_incident, data=lambda world: {**seen(world), "reason": "known"}
    ),
    "incident_unmute": Route(
        post="operator", args=an_incident(state="muted"), data=lambda _: {"seen": 0}
    ),
    "incident_resolve": Route(post="operator", args=an_incident(), data=lambda _: {"seen": 0}),
    "tasks": Route(get="viewer"),
    "export": Route(
        post="viewer", args=lambda _: ["tasks"], data=lambda _: {"narrowing": "", "format": "?"}
    ),
    "save_view": Route(post="viewer", data=lambda _: {"name": "bad", "query": "state:error"}),
    "forget_view": Route(post="viewer", args=lambda world: [world.view.id]),
    "task": Route(get="viewer", args=of_task),
    "undo": Route(
        get="operator",
        post="operator",
        args=of_task,
        data=lambda world: {**WHY, "seen": undo_preview(world.step.task_id)["seen"]},
        after="cancelled",
    ),
    "start": Route(
        get="operator",
        post="operator",
        args=lambda _: ["greet"],
        data=lambda _: {**WHY, "reference": new_reference(), "input-name": '"Ada"'},
    ),
    "again": Route(
        get="operator",
        post="operator",
        args=of_task,
        data=lambda _: {**WHY, "reference": new_reference(again=True)},
    ),
    "started": Route(get="viewer", args=a_submission),
    "priority": Route(
        get="operator",
        post="operator",
        args=of_task,
        data=lambda _: {**WHY, "seen": 0, "priority": 5},
    ),
    "amend": Route(
        get="operator",
        post="operator",
        args=of_task,
        data=lambda world: {
            **WHY,
            "seen": version(world.step.task),
            "payload": '{"name": "Ada", "gift": true}',
        },
    ),
    "palette": Route(get="viewer", query="?q=t-1"),
    "row": Route(get="viewer", args=of_step),
    "resubmit": Route(
        get="operator", post="operator", args=of_step, data=lambda _: WHY, after="pending"
    ),
    "change": Route(
        get="operator",
        post="operator",
        args=of_step,
        data=lambda _: {**WHY, "payload": '{"to": "Ada"}'},
        after="pending",
    ),
    "by_hand": Route(
        get="operator",
        post="operator",
        args=of_step,
        data=lambda _: {**WHY, "payload": '{"id": "1"}'},
        after="processed",
    ),
    "record": Route(
        get="operator",
        post="operator",
        args=an_awaiting_step,
        data=lambda _: {"attempt": 1, "reason": "why", "ended": "done", "payload": '{"id": "1"}'},
    ),
    "decisions": Route(get="viewer"),
    "schedules": Route(get="viewer", args=lambda _: a_schedule() and []),
    "schedule_pause": Route(
        get="operator", post="operator", args=lambda _: a_schedule(), data=lambda _: WHY
    ),
    "schedule_resume": Route(
        get="operator", post="operator", args=lambda _: a_schedule(paused=True), data=lambda _: WHY
    ),
    "schedule_run": Route(
        get="operator",
        post="operator",
        args=lambda _: a_schedule(),
        data=lambda _: {**WHY, "reference": new_reference(schedule="nightly")},
    ),
    "hold": Route(get="operator", post="operator", query="?agent=greeter", data=lambda _: WHY),
    "release": Route(
        get="operator", post="operator", args=lambda world: [world.held.id], data=lambda _: WHY
    ),
    "settle": Route(
        get="operator",
        post="operator",
        args=lambda world: [late_effect(world.step)],
        data=lambda _: WHY,
    ),
    "acknowledge": Route(post="operator", args=lambda world: [world.step.alert_id]),
    "operations": Route(get="viewer"),
    "operation": Route(get="viewer", args=operation("approval")),
    "operation_new": Route(
        post="operator", data=lambda world: {"act": "hold", "task": str(world.step.task_id)}
    ),
    "operation_confirm": Route(
        post="operator",
        args=operation("draft"),
        data=lambda _: {**WHY, "rate": 1, "first": "all", "shown": 1},
    ),
    "operation_likewise": Route(post="operator", args=operation("waiting")),
    "operation_look": Route(post="operator", args=operation("draft")),
    "operation_approve": Route(post="lead", args=operation("approval")),
    "operation_pause": Route(post="operator", args=operation("running")),
    "operation_resume": Route(post="operator", args=operation("paused")),
    "operation_abort": Route(post="operator", args=operation("running")),
    "dead_letters": Route(get="viewer", args=a_dead_letter),
    "dead_letters_retry": Route(
        get="operator", post="operator", args=a_dead_letter, query="?state=refused"
    ),
    "dead_letters_close": Route(
        get="operator",
        post="operator",
        args=a_dead_letter,
        query="?state=refused",
        data=lambda _: WHY,
    ),
    "agents": Route(get="viewer"),
    "probe": Route(get="operator", post="operator", args=lambda _: ["greeter"], data=lambda _: WHY),
    "system": Route(get="viewer"),
    "runbook": Route(get="viewer"),
    "audit": Route(get="viewer"),
    "workflows": Route(get="viewer"),
}


def user_of(who):
    if who == "anonymous":
        return None
    user = person(f"pat-{who}", is_superuser=who == "superuser")
    if who in ROLES:
        user.groups.add(Group.objects.get(name=who))
    return user


def may(who, least) -> bool:
    return PEOPLE.index(who) >= PEOPLE.index(least)


def test_every_route_has_a_row():
    assert {getattr(pattern, "name", None) for pattern in urls.urlpatterns} == set(TABLE)


def test_role_includes_the_rights_of_lesser_roles():
    lesser: set[str] = set()
    for name in ("viewer", "operator", "lead", "admin"):
        assert lesser < set(ROLES[name])
        lesser = set(ROLES[name])


@pytest.mark.parametrize("route", TABLE)
@pytest.mark.parametrize("who", PEOPLE)
def test_access_table_holds_for_each_route_and_role(who, route):
    row, user = TABLE[route], user_of(who)
    world = World(who=user or person("owner"), step=in_error(new_task("t-1")))
    Gate.objects.filter(agent="greeter").update(state="open", probe_at="2099-01-01T00:00:00Z")
    address = reverse(f"ops:{route}", args=row.args(world)) + row.query
    client = browser(user)
    for method in METHODS:
        least = row.least(method)
        data = row.data(world) if method == "post" else None
        response = getattr(client, method)(address, data)
        if not least:
            expected = METHOD
        elif user is None:
            expected = LOGIN
        elif not may(who, least):
            expected = NO
        else:
            expected = DONE if method == "post" else OK
        assert response.status_code == expected, method
        if expected == LOGIN:
            assert response["Location"].startswith("/login/?next=/ops/")
        if expected == NO and method != "head":
            assert page(response).only('[data-refused="permission"]')
            shown = response.text.replace(quote(row.query, safe=""), "")  # what was asked for
            assert "t-1" not in shown
    world.step.refresh_from_db()
    acted = bool(row.post) and may(who, row.post)
    assert world.step.process_state == (row.after if acted else "error")


def actions_of(shown) -> set[str]:
    """Return the routes of the dashboard that a page's forms and buttons post to."""
    actions = [form.attributes.get("action", "") for form in shown.all('form[method="post"]')]
    actions += [button["formaction"] for button in shown.all("[formaction]")]
    return {
        str(resolve(action.partition("?")[0]).url_name)
        for action in actions
        if action.startswith("/ops/")
    }


@pytest.mark.parametrize("who", PEOPLE[2:])
def test_pages_offer_only_permitted_actions(who):
    """On every page: an action that a role may not do has no button."""
    user = user_of(who)
    world = World(who=user, step=in_error(new_task("t-1")))
    client = browser(user)
    for name, row in TABLE.items():
        if not row.get or not may(who, row.get):
            continue
        shown = client.get(reverse(f"ops:{name}", args=row.args(world)) + row.query)
        for route in actions_of(page(shown)):
            assert may(who, TABLE[route].post), f"{name} offers {route}"


@pytest.mark.parametrize(
    ("who", "route", "permission", "role"),
    [("viewer", "resubmit", "resubmit", "operator"), ("stranger", "overview", "operate", "viewer")],
)
def test_refusal_names_the_missing_permission_and_its_roles(who, route, permission, role):
    user = user_of(who)
    world = World(who=user, step=in_error(new_task("t-1")))
    address = reverse(f"ops:{route}", args=TABLE[route].args(world))
    client = browser(user)
    refused = client.post(address) if TABLE[route].post else client.get(address)
    assert refused.status_code == NO
    shown = page(refused)
    sentence = shown.only("[data-refused]").text
    assert f"“{Permission.objects.get(codename=permission).name}”" in sentence
    roles = shown.texts("em")
    assert roles[0] == role
    assert set(roles) == {name for name in ROLES if may(name, role)}


@pytest.fixture
def _ada(monkeypatch):
    """Tasks whose contact is in errors and in reasons that users typed."""
    greet = registry.workflows["greet"]
    monkeypatch.setitem(registry.workflows, "greet", replace(greet, contact=api.field("name")))
    for number in range(2):
        step = in_error(
            new_task(f"t-{number}", data={"name": "Ada-of-Bath"}),
            code="no_mailbox",
            message="unknown mailbox Ada-of-Bath",
        )
        if number:
            again = {"attempt": 1, "reason": "ada-of-bath has a mailbox now"}
            browser(user_of("operator")).post(reverse("ops:resubmit", args=[step.id]), again)
    Policy.objects.filter(agent="greeter").update(backoff=1000, backoff_cap=1000)
    fail(claimed(), code="no_mailbox", message="unknown mailbox Ada-of-Bath")


@pytest.mark.usefixtures("_ada")
@pytest.mark.parametrize(("who", "sees"), [("viewer", False), ("lead", True)])
def test_personal_data_requires_its_permission(who, sees):
    user = user_of(who)
    world = World(who=user, step=Step.objects.filter(process_state="error").get())
    client = browser(user)
    for route, row in TABLE.items():
        if not row.get or not may(who, row.get):
            continue
        text = client.get(reverse(f"ops:{route}", args=row.args(world)) + row.query).text.lower()
        if not sees:
            assert "ada-of-bath" not in text, route
        elif route in {"overview", "tasks", "task", "audit", "dead_letters"}:
            assert "ada-of-bath" in text, route
    names = page(client.get("/ops/tasks/?q=ada-of-bath")).texts("a[data-open]")
    assert ("t-0" in names) is sees


def test_refusal_leads_back_to_the_page_before():
    client = browser(user_of("viewer"))
    before = {"Referer": "http://testserver/ops/agents/?x=1"}
    shown = page(client.get("/ops/holds/new/?agent=greeter", headers=before))
    assert shown.only("[data-back]")["href"] == "/ops/agents/?x=1"


def test_resubmit_permission_alone_is_not_enough():
    step = in_error()
    client = browser(person("pat", "resubmit"))
    address = reverse("ops:resubmit", args=[step.id])
    assert client.post(address, {"attempt": 1, "reason": "why not"}).status_code == NO


def test_resubmit_form_requires_the_permission():
    step = in_error()
    address = reverse("ops:task", args=[step.task_id])
    form = f'form[action="{reverse("ops:resubmit", args=[step.id])}"]'
    assert page(browser(person("ann", "operate", "resubmit")).get(address)).only(form)
    assert page(browser(person("bob", "operate")).get(address)).all(form) == []


def test_form_without_csrf_token_is_refused():
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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("http://testserver/ops/tasks/?q=x", "/ops/tasks/%3Fq%3Dx"),
        ("http://evil.example/ops/tasks/", "/ops/"),
        ("http://testserver//evil.example/ops/", "/ops/"),
        ("http://testserver/account/", "/ops/"),
    ],
)
def test_login_after_an_act_without_a_session_leads_back_to_its_page(before, after):
    address = reverse("ops:resubmit", args=[in_error().id])
    answer = browser().post(address, {"attempt": 1}, headers={"Referer": before})
    assert (answer.status_code, answer["Location"]) == (302, f"/login/?next={after}")


def test_poll_after_the_session_ended_is_refused_and_changes_nothing():
    response = browser().get("/ops/?seen=abc", headers={"HX-Request": "true"})
    assert (response.status_code, response.content) == (401, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/ops/tasks/00000000-0000-0000-0000-000000000000/",
        "/ops/tasks/nonsense/",
        "/ops/nothing/",
    ],
)
def test_unknown_object_is_404(path):
    response = browser(person("ann", "operate")).get(path)
    assert response.status_code == 404
    assert 'href="/ops/tasks/"' in response.text  # the dashboard's page, not the shop's


@pytest.mark.parametrize("number", ["0", "999999", "9" * 40])
def test_unknown_step_is_404(number):
    client = browser(person("ann", "operate", "resubmit"))
    response = client.post(f"/ops/steps/{number}/resubmit/", {"attempt": 1, "reason": "x"})
    assert response.status_code == 404
