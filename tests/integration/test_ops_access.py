"""Who may see and do what below /ops/: every route, every role, every method."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.urls import resolve, reverse

from orchestration import api, registry, urls
from orchestration.alerts import LATE_EFFECT, raise_alert
from orchestration.models import Gate, Incident, Policy, SavedView, Step, Submission
from orchestration.models.alert import Severity
from orchestration.models.fields import DatabaseNow
from orchestration.queries import undo_preview
from orchestration.roles import ROLES
from orchestration.transitions.holds import hold
from tests.engine import claimed, in_error, new_task
from tests.operations import standing
from tests.operators import browser, fail, person, words

pytestmark = pytest.mark.django_db

PEOPLE = ["anonymous", "stranger", "viewer", "operator", "lead", "admin", "superuser"]
METHODS = ["get", "head", "post", "put", "patch", "delete"]
LOGIN, NO, OK, METHOD, DONE = 302, 403, 200, 405, 303


@dataclass
class World:
    """What there is to look at and to act on; `who` acts."""

    who: Any
    step: Step

    @property
    def view(self):
        return SavedView.objects.create(owner=self.who, name="mine", query="state:error")

    @property
    def held(self):
        return hold(actor="bob", reason="wait", task=new_task("t-2").id)


def late_effect(step) -> int:
    """Return the open alert of an effect of a step that showed late."""
    return raise_alert(
        f"{LATE_EFFECT}{step.task_id}/{step.name}", severity=Severity.CRITICAL, title="late"
    )


def nothing(_world) -> Any:
    return []


@dataclass
class Route:
    """Who may ask by which methods: the least role for each, as every role can what lesser ones can.

    `args` and `data` are made from the world; `after` is the state of the failed step once somebody
    acted who may.
    """

    get: str = ""
    post: str = ""
    args: Callable[[World], Any] = nothing
    data: Callable[[World], Any] = field(default=lambda _world: {})
    query: str = ""
    after: str = "error"

    def least(self, method):
        return {"get": self.get, "head": self.get, "post": self.post}.get(method, "")


# A row for each address of the dashboard; a method that a route does not know is a 405 for
# everybody, and tells nothing.
WHY = {"attempt": 1, "reason": "it is repaired"}


def admin():
    return person("root", is_superuser=True)


def of_task(world):
    return [world.step.task_id]


def of_step(world):
    return [world.step.id]


def operation(state):
    """Return what makes a bulk operation in a state, to hold the task."""
    return lambda world: [standing(world.step.task, state).id]


def of_incident(world):
    return [world.step.incident_id]


def an_incident(**fields):
    """Return how an incident that nothing suffers from is made."""
    return lambda _world: [
        Incident.objects.create(fingerprint="v1-x", version=1, title="calm", **fields).id
    ]


def a_dead_letter(_world):
    Submission.objects.create(
        workflow="greet", reference="t-9", data={"name": "Ada-of-Bath"}, refused_at=DatabaseNow(),
        reason="nobody knows Ada-of-Bath",
    )  # fmt: skip
    return []


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
    "priority": Route(
        get="operator",
        post="operator",
        args=of_task,
        data=lambda _: {**WHY, "seen": 0, "priority": 5},
    ),
    "row": Route(get="viewer", args=of_step),
    "resubmit": Route(
        get="operator", post="operator", args=of_step, data=lambda _: WHY, after="pending"
    ),
    "change": Route(
        get="operator",
        post="operator",
        args=of_step,
        data=lambda _: {**WHY, "value.to": "Ada"},
        after="pending",
    ),
    "by_hand": Route(
        get="operator",
        post="operator",
        args=of_step,
        data=lambda _: {**WHY, "value": '{"id": "1"}'},
        after="skipped",
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


def test_each_role_can_what_the_lesser_ones_can():
    lesser: set[str] = set()
    for name in ("viewer", "operator", "lead", "admin"):
        assert lesser < set(ROLES[name])
        lesser = set(ROLES[name])


@pytest.mark.parametrize("route", TABLE)
@pytest.mark.parametrize("who", PEOPLE)
def test_the_table_holds(who, route):
    row, user = TABLE[route], user_of(who)
    world = World(who=user or person("somebody"), step=in_error(new_task("t-1")))
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
            assert "lacks the permission" in response.text
            assert "t-1" not in response.text
    world.step.refresh_from_db()
    acted = bool(row.post) and may(who, row.post)
    assert world.step.process_state == (row.after if acted else "error")


def forms_of(page) -> set[str]:
    """Return the routes of the dashboard that a page's forms and buttons act on."""
    acts = re.findall(r'<form[^>]*method="post"[^>]*action="(/ops/[^"]*)"', page)
    acts += re.findall(r'formaction="(/ops/[^"]*)"', page)
    return {str(resolve(act.partition("?")[0]).url_name) for act in acts}


@pytest.mark.parametrize("who", PEOPLE[2:])
def test_nothing_is_offered_that_would_be_refused(who):
    """On every page: what a role may not do has no button, so that nobody runs into a wall."""
    user = user_of(who)
    world = World(who=user, step=in_error(new_task("t-1")))
    client = browser(user)
    for name, row in TABLE.items():
        if not row.get or not may(who, row.get):
            continue
        for route in forms_of(
            client.get(reverse(f"ops:{name}", args=row.args(world)) + row.query).text
        ):
            assert may(who, TABLE[route].post), f"{name} offers {route}"


@pytest.mark.parametrize(
    ("who", "route", "said"),
    [
        ("viewer", "resubmit", "“Can resubmit failed steps”. Nothing was done. The roles operator"),
        (
            "stranger",
            "overview",
            "“Can see the operators&#x27; dashboard”. Nothing was done. The roles viewer",
        ),
    ],
)
def test_who_is_refused_is_told_what_is_missing_and_who_has_it(who, route, said):
    user = user_of(who)
    world = World(who=user, step=in_error(new_task("t-1")))
    address = reverse(f"ops:{route}", args=TABLE[route].args(world))
    client = browser(user)
    refused = client.post(address) if TABLE[route].post else client.get(address)
    assert refused.status_code == NO
    assert said in words(refused).replace(" .", ".").replace(" ,", ",")


@pytest.fixture
def _ada(monkeypatch):
    """Tasks whose contact turns up in errors and in the words of people."""
    greet = registry.workflows["greet"]
    monkeypatch.setitem(registry.workflows, "greet", replace(greet, contact=api.field("name")))
    for number in range(2):
        step = in_error(
            new_task(f"t-{number}", data={"name": "Ada-of-Bath"}),
            code="no_mailbox",
            message="there is no mailbox Ada-of-Bath",
        )
        if number:
            again = {"attempt": 1, "reason": "ada-of-bath has a mailbox now"}
            browser(user_of("operator")).post(reverse("ops:resubmit", args=[step.id]), again)
    Policy.objects.filter(agent="greeter").update(backoff=1000, backoff_cap=1000)
    fail(claimed(), code="no_mailbox", message="there is no mailbox Ada-of-Bath")


@pytest.mark.usefixtures("_ada")
@pytest.mark.parametrize(("who", "sees"), [("viewer", False), ("lead", True)])
def test_personal_data_is_for_those_who_may_see_it(who, sees):
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
    found = client.get("/ops/tasks/?q=ada-of-bath").text
    assert (">t-0<" in found) is sees


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


def test_a_poll_after_the_session_ended_is_told_so_and_changes_nothing():
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
def test_what_is_not_there_is_a_404(path):
    assert browser(person("ann", "operate")).get(path).status_code == 404


@pytest.mark.parametrize("number", ["0", "999999", "9" * 40])
def test_a_step_that_is_not_there_is_a_404(number):
    client = browser(person("ann", "operate", "resubmit"))
    response = client.post(f"/ops/steps/{number}/resubmit/", {"attempt": 1, "reason": "x"})
    assert response.status_code == 404
