"""Actions of an operator on one task: permitted, forbidden, and after another action."""

import json
from dataclasses import replace

import pytest
from django.urls import reverse

from orchestration import registry
from orchestration.api import field
from orchestration.console.forms.payload import PayloadForm
from orchestration.console.queries.conflicts import DID
from orchestration.decisions.recovery import KEY_FORGOTTEN
from orchestration.models import Alert, Attempt, Event, Hold, Incident, Step
from orchestration.models.fields import DatabaseNow
from orchestration.models.history import EventKind
from orchestration.operations.undo_preview import undo_preview
from orchestration.transitions.holds import hold, release
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import resubmit as resubmit_step
from orchestration.transitions.undo import undo
from tests.support.engine import (  # fmt: skip
    claimed,
    in_error,
    irreversible,
    new_task,
    reply_to,
    run_to_end,
    states,
    step_of,
)
from tests.support.operators import browser, gave_up, person, press
from tests.support.page import conflict_of, page, query_count

pytestmark = pytest.mark.django_db
GRACE = '{"to": "Grace"}'


def able(*permissions, name="ann"):
    return browser(person(name, "operate", "see_personal", *permissions))


def corrector(name="ann"):
    return able("resubmit", "correct", name=name)


def of(route, thing):
    return reverse(f"ops:{route}", args=[thing.id])


def change(client, step, *, attempt=None, reason="the name was wrong", **fields):
    typed = {"attempt": step.attempt if attempt is None else attempt, "reason": reason}
    typed |= {"payload": json.dumps(step.request), **fields}
    return client.post(of("change", step), typed)


def by_hand(client, step, result='{"id": "g9"}', *, attempt=None, reason="rang them up"):
    typed = {"attempt": step.attempt if attempt is None else attempt, "reason": reason}
    return client.post(of("by_hand", step), {**typed, "payload": result})


def ask_undo(client, task, *, seen=None, reason="they changed their mind", **fields):
    seen = seen or undo_preview(task.id)["seen"]
    return client.post(of("undo", task), {"seen": seen, "reason": reason, **fields})


def last_event(task) -> Event:
    return Event.objects.filter(task=task).order_by("-id")[0]


# --- resubmit with changes -----------------------------------------------------------------------
def test_changed_input_is_sent_under_a_new_key_and_both_are_kept():
    client, task = corrector(), new_task()
    step = in_error(task)
    keys = page(client.get(of("change", step))).section("h-key")
    assert keys.texts("code") == [f"{task.id}:hello:do:2"]
    answer = change(client, step, payload=GRACE)
    assert answer.status_code == 303
    step.refresh_from_db()
    assert (step.process_state, step.generation, step.request) == ("pending", 2, {"to": "Grace"})
    event = last_event(task)
    assert (event.actor, event.reason) == ("ann", "the name was wrong")
    assert (event.detail["before"], event.detail["after"]) == ({"to": "Ada"}, {"to": "Grace"})
    shown = page(client.get(of("task", task)))
    assert shown.only("#messages").only(".success")
    (row,) = [row for row in shown.section("h-events").all("tr") if row.all("ins")]
    assert (row.texts("del"), row.texts("ins")) == (["Ada"], ["Grace"])
    assert f"{task.id}:hello:do:2" in row.texts("code")


def test_unchanged_input_keeps_its_key():
    client, task = corrector(), new_task()
    step = gave_up(task, "transient")
    assert change(client, step, reason="they say it works now").status_code == 303
    step.refresh_from_db()
    assert (step.generation, step.request) == (1, {"to": "Ada"})
    assert "before" not in last_event(task).detail


def test_input_of_a_step_in_doubt_cannot_be_changed():
    client, task = corrector(), new_task()
    step = gave_up(task, "unknown")
    assert page(client.get(of("change", step))).only('[name="nothing_done"]')
    refused = change(client, step, payload=GRACE)
    assert refused.status_code == 422
    assert page(refused).only("#id_nothing_done_error")
    step.refresh_from_db()
    assert step.process_state == "error"
    found_out = change(client, step, payload=GRACE, nothing_done="on")
    assert found_out.status_code == 303
    step.refresh_from_db()
    assert (step.generation, step.in_doubt, step.request["to"]) == (2, False, "Grace")


def test_forgotten_key_requires_a_check_by_the_user():
    client, task = corrector(), new_task()
    step = gave_up(task, "unknown")
    step.error_code = KEY_FORGOTTEN
    step.save(update_fields=["error_code"])
    shown = page(client.get(of("task", task)))
    assert shown.only("[data-forgotten]")
    assert shown.all(f'[action="{of("resubmit", step)}"]') == []
    assert press(client, step).status_code == 409
    refused = change(client, step)
    assert refused.status_code == 422
    assert page(refused).only("#id_nothing_done_error")
    assert change(client, step, nothing_done="on").status_code == 303


@pytest.mark.parametrize("typed", ["[1", "[1]", '{"to": 7}', '{"to": "Ada", "more": 1}'])
def test_input_that_does_not_fit_the_schema_is_refused(typed):
    client, step = corrector(), in_error()
    refused = client.post(of("change", step), {"attempt": 1, "reason": "so", "payload": typed})
    assert refused.status_code == 422
    assert refused.context["payload"].errors["payload"]
    assert page(refused).only("#id_payload_error")
    step.refresh_from_db()
    assert (step.process_state, step.request) == ("error", {"to": "Ada"})


def test_change_after_another_change_names_the_first_user():
    step = in_error()
    assert change(corrector("ann"), step, payload=GRACE).status_code == 303
    bob = corrector("bob")
    for late in (
        change(bob, step, payload='{"to": "Edith"}'),
        by_hand(bob, step),
        bob.get(of("change", step)),
        bob.get(of("by_hand", step)),
    ):
        actor, sentence = conflict_of(late)
        assert actor == "ann"
        assert "the name was wrong" in sentence
    step.refresh_from_db()
    assert (step.request, step.generation) == ({"to": "Grace"}, 2)


def test_redacted_fields_survive_a_change_of_the_others(monkeypatch):
    greet = replace(registry.workflows["greet"], personal=[field("name")])
    monkeypatch.setitem(registry.workflows, "greet", greet)
    step = in_error()
    client = browser(person("bob", "operate", "resubmit", "correct"))
    form = client.get(of("change", step))
    assert "Ada" not in form.text
    assert form.context["payload"].hidden == ["to"]
    sent = form.context["payload"]["payload"].value()
    for text, status in ((sent.replace("[hidden]", "Eve"), 422), (sent, 303)):
        answer = client.post(of("change", step), {"attempt": 1, "reason": "try", "payload": text})
        assert answer.status_code == status
    step.refresh_from_db()
    assert step.request == {"to": "Ada"}


# --- done by hand --------------------------------------------------------------------------------
def test_step_done_by_hand_passes_its_result_on():
    client, task = able("correct"), new_task()
    step = in_error(task)
    assert page(client.get(of("by_hand", step))).only("#d-request")
    assert by_hand(client, step).status_code == 303
    step.refresh_from_db()
    assert (step.process_state, step.result) == ("processed", {"id": "g9"})
    assert states(task)["again"] == "pending"
    assert step_of(task, "again").request["heard"] == "g9"
    assert not Alert.objects.filter(closed_at=None).exists()
    event = Event.objects.get(task=task, kind="by_hand")
    assert (event.actor, event.reason, event.detail["result"]) == (
        "ann",
        "rang them up",
        {"id": "g9"},
    )


@pytest.mark.parametrize(
    ("result", "reason", "field"),
    [("{", "why", "payload"), ("7", "why", "payload"), ('{"id": "1"}', " ", "reason")],
)
def test_step_done_by_hand_requires_a_result_and_a_reason(result, reason, field):
    client, step = able("correct"), in_error()
    refused = by_hand(client, step, result, reason=reason)
    assert refused.status_code == 422
    assert [error["id"] for error in page(refused).all(".wrong")] == [f"id_{field}_error"]
    step.refresh_from_db()
    assert step.process_state == "error"


def test_empty_values_of_a_result_are_named():
    schema = {"type": "object", "required": ["id", "at"], "properties": {
        "id": {"type": "string", "minLength": 1}, "at": {"type": "integer"}}}  # fmt: skip
    form = PayloadForm({"payload": '{"id": null, "at": "x"}'}, schema=schema)
    assert form.errors["payload"] == [
        'at: must be a whole number, not "x"',
        "id: a value is missing",
    ]
    empty = PayloadForm({"payload": '{"id": ""}'}, schema=schema)
    assert empty.errors["payload"] == ["id: a value is missing", "The object: 'at' is missing"]


# --- undo ----------------------------------------------------------------------------------------
def test_undo_preview_matches_what_is_done():
    client, task = able("undo"), new_task()
    run_to_end(task)
    calls = page(client.get(of("undo", task))).section("h-calls")
    assert [row[0] for row in calls.rows()] == ["again", "hello"]  # in this order
    codes = calls.texts("code")
    assert codes[:1] == ["greeter.take_back"]
    assert f"{task.id}:hello:undo:1" in codes
    assert calls.texts("strong") == ["No money"]
    assert ask_undo(client, task).status_code == 303
    task.refresh_from_db()
    assert task.state == "undoing"
    event = Event.objects.get(task=task, kind="undo")
    assert (event.actor, event.reason) == ("ann", "they changed their mind")
    assert of("undo", task) not in client.get(of("task", task)).text


def test_undo_preview_names_money_in_doubt():
    client, task = able("undo"), new_task()
    Step.objects.filter(task=task, name="hello").update(charges={"amount": 1234, "currency": "EUR"})
    claimed()
    calls = page(client.get(of("undo", task))).section("h-calls")
    assert calls.texts(".badge") == ["in doubt"]
    assert calls.texts("strong") == ["€12.34"]
    assert "including steps in doubt" in calls.text
    assert "again" in calls.only("[data-refund]").text  # is cancelled


def test_undo_is_refused_if_its_preview_is_outdated():
    client, task = able("undo"), new_task()
    seen = undo_preview(task.id)["seen"]
    run_to_end(task)
    refused = ask_undo(client, task, seen=seen)
    assert conflict_of(refused)[0] == ""  # no user: the task went on
    assert of("undo", task) in refused.text
    task.refresh_from_db()
    assert task.state == "processed"


def test_second_undo_names_the_first_user():
    task = new_task()
    run_to_end(task)
    seen = undo_preview(task.id)["seen"]
    assert ask_undo(able("undo"), task).status_code == 303
    bob = able("undo", name="bob")
    for late in (ask_undo(bob, task, seen=seen), bob.get(of("undo", task))):
        actor, sentence = conflict_of(late)
        assert actor == "ann"
        assert DID[EventKind.UNDO] in sentence
    assert Event.objects.filter(task=task, kind="undo").count() == 1


def test_decision_about_a_step_of_an_undone_task_is_refused():
    task = new_task()
    step = in_error(task)
    undo(task.id, actor="ann", reason="no longer wanted")
    late = press(able("resubmit", name="bob"), step)
    actor, sentence = conflict_of(late)
    assert actor == "ann"
    assert DID[EventKind.UNDO] in sentence
    assert "no longer wanted" in sentence


def test_irreversible_step_forbids_the_undo_without_force():
    task = irreversible(new_task())
    client = able("undo")
    shown = page(client.get(of("undo", task))).only("#content")
    assert shown.only("div.strip.warning").texts("li") == ["“again”: they heard it"]
    assert shown.all("form") == []
    assert ask_undo(client, task, force="on").status_code == 403
    task.refresh_from_db()
    assert task.state == "processed"


def test_undo_can_be_forced_with_the_permission():
    task = irreversible(new_task())
    client = able("undo", "force_undo")
    hesitant = ask_undo(client, task)
    assert hesitant.status_code == 422
    assert page(hesitant).only("#id_force_error")
    assert ask_undo(client, task, force="on").status_code == 303
    event = Event.objects.get(task=task, kind="undo")
    assert event.detail["forced"]
    assert event.detail["standing"] == ["again"]


# --- hold, release, acknowledge --------------------------------------------------------------------
def test_task_is_held_and_released_with_user_and_reasons():
    client, task = able("hold"), new_task()
    address = reverse("ops:hold") + f"?task={task.id}"
    assert page(client.get(of("task", task))).only(f'[href="{address}"]')
    assert client.post(address, {"reason": "wait for Bob"}).status_code == 303
    assert claimed() == []
    held = Hold.objects.get(task=task, until=None)
    shown = page(client.get(of("task", task))).only("#live")
    assert "held by ann" in shown.only(".ops-now").text
    assert shown.only(".strip.warning").texts("strong") == ["ann"]
    assert "wait for Bob" in shown.only(".strip.warning").text
    second = able("hold", name="bob").post(address, {"reason": "me too"})
    actor, sentence = conflict_of(second)
    assert actor == "ann"
    assert DID[EventKind.HELD] in sentence
    assert client.post(of("release", held), {"reason": "Bob came"}).status_code == 303
    late = able("hold", name="eve").post(of("release", held), {"reason": "now"})
    actor, sentence = conflict_of(late)
    assert actor == "ann"
    assert DID[EventKind.RELEASED] in sentence
    kinds = Event.objects.filter(task=task).order_by("id").values_list("kind", "actor", "reason")
    assert list(kinds) == [("held", "ann", "wait for Bob"), ("released", "ann", "Bob came")]


@pytest.mark.parametrize("target", ["agent=greeter", "step=greet/hello", "everything=1"])
def test_hold_applies_to_each_kind_of_target(target):
    client = able("hold")
    new_task()
    address = f"{reverse('ops:hold')}?{target}"
    option = target.replace("=1", "").replace("=", " ")
    assert f"hold --{option} --reason" in page(client.get(address)).only("pre").text
    assert client.post(address, {"reason": "they move"}).status_code == 303
    assert claimed() == []
    held = Hold.objects.get(until=None)
    assert "they move" in client.get(reverse("ops:agents")).text
    assert client.post(address, {"reason": "again"}).status_code == 409
    assert client.get(of("release", held)).status_code == 200
    assert client.post(of("release", held), {"reason": "they moved"}).status_code == 303
    held.refresh_from_db()
    assert (held.released_by, held.released_why) == ("ann", "they moved")
    events = Event.objects.filter(task=None).order_by("id").values_list("kind", "detail__target")
    assert list(events) == [("held", held.target), ("released", held.target)]


@pytest.mark.parametrize(
    "target",
    ["", "agent=unknown", "step=greet", "step=greet/bye", "task=1", "agent=greeter&everything=1",
     "task=00000000-0000-0000-0000-000000000000"],
)  # fmt: skip
def test_unknown_target_cannot_be_held(target):
    client = able("hold")
    address = f"{reverse('ops:hold')}?{target}"
    assert client.get(address).status_code == 404
    assert client.post(address, {"reason": "why"}).status_code == 404
    assert not Hold.objects.exists()


def test_automatic_hold_cannot_be_released_by_hand():
    held = hold(
        agent="greeter", cause="no_worker", actor="housekeeper", reason="no worker serves it"
    )
    client = able("hold")
    refused = client.post(of("release", held), {"reason": "go"})
    assert conflict_of(refused)[0] == ""
    held.refresh_from_db()
    assert held.until is None


def test_alert_is_acknowledged_once_and_names_its_user():
    step = in_error()
    task_page = reverse("ops:task", args=[step.task_id])
    ann, bob = able("acknowledge"), able("acknowledge", name="bob")
    address = reverse("ops:acknowledge", args=[step.alert_id])
    assert page(bob.get(task_page)).only(f'form[action="{address}"]')
    taken = ann.post(address, {"next": task_page})
    assert (taken.status_code, taken["Location"]) == (303, task_page)
    seen = page(bob.get(task_page))
    assert seen.all(f'[action="{address}"]') == []
    alert = seen.only('.ops-alert[data-acknowledged-by="ann"]')
    assert alert.texts("strong") == ["ann"]
    late = bob.post(address, {"next": "https://elsewhere.example/"})
    assert conflict_of(late)[0] == "ann"
    assert "elsewhere" not in late.text
    event = Event.objects.get(kind="acknowledged")
    assert (event.actor, event.task_id, event.detail["alert"]) == ("ann", None, step.alert_id)


def test_alert_is_acknowledged_with_its_incident():
    step = in_error()
    able("acknowledge").post(reverse("ops:acknowledge", args=[step.alert_id]))
    incident = Incident.objects.get()
    assert (incident.state, incident.acknowledged_by) == ("known", "ann")
    event = Event.objects.get(kind="incident", detail__what="known")
    assert (event.incident_id, event.actor) == (incident.id, "ann")


# --- what is offered ------------------------------------------------------------------------------
@pytest.mark.parametrize("granted", [None, "resubmit", "hold", "undo", "correct", "acknowledge"])
def test_actions_are_offered_by_permission(granted):
    step = in_error()
    addresses = {
        "resubmit": of("resubmit", step),
        "hold": f"{reverse('ops:hold')}?task={step.task_id}",
        "undo": of("undo", step.task),
        "correct": of("by_hand", step),
        "acknowledge": of("acknowledge", step.alert),
    }
    client = browser(person("ann", "operate", *([granted] if granted else [])))
    shown = page(client.get(of("task", step.task))).only("#live")
    for permission, address in addresses.items():
        offered = shown.all(f'a[href="{address}"]') + shown.all(f'form[action="{address}"]')
        assert len(offered) == (permission == granted)
    commands = " ".join(shown.texts("pre"))
    assert (f"manage.py tasks resubmit {step.id}" in commands) == (granted == "resubmit")


def test_decision_about_an_older_failure_is_refused():
    task = new_task()
    step = in_error(task)
    assert resubmit_step(step.id, attempt=1, actor="ann", reason="first") is None
    (request,) = claimed()
    record([reply_to(request, "rejected")])
    late = by_hand(able("correct", name="bob"), step, attempt=1)
    assert conflict_of(late)[0] == "ann"
    assert Event.objects.filter(actor="bob").count() == 0


def test_release_of_an_unknown_hold_is_refused():
    assert release(999, actor="bob", reason="none") is not None


def test_planned_request_shows_its_placeholders():
    task = new_task()
    claimed()
    again = step_of(task, "again")
    planned = page(able().get(of("task", task))).only(f"#d-request-{again.id}").text
    assert "«id of the result of hello»" in planned
    assert "«name of the input»" in planned


def test_queries_are_independent_of_steps_attempts_and_events():
    client = able("resubmit", "correct", "undo", "hold", "acknowledge")
    step = in_error()
    pages = [
        reverse("ops:task", args=[step.task_id]),
        reverse("ops:undo", args=[step.task_id]),
        of("change", step),
    ]
    few = [query_count(client, address) for address in pages]
    Step.objects.bulk_create(
        Step(
            task_id=step.task_id, name=f"more-{number}", agent="greeter", action="greet",
            request={"to": "Ada"}, process_state="error", alert_id=step.alert_id, attempt=1,
        )
        for number in range(40)
    )  # fmt: skip
    Attempt.objects.bulk_create(
        Attempt(
            step_id=step_id, number=number, generation=1, scheduler="s-1", agent="a-1",
            dispatched_at=DatabaseNow(), outcome="transient",
        )
        for step_id in step.task.steps.values_list("id", flat=True)
        for number in range(2, 12)
    )  # fmt: skip
    Event.objects.bulk_create(
        Event(task_id=step.task_id, step_id=step.id, kind="retry", actor="s", reason=str(number))
        for number in range(300)
    )
    assert [query_count(client, address) for address in pages] == few
    shown = page(client.get(pages[0]))
    assert shown.only("[data-cut]")
    assert "“more-39”" in shown.all(".ops-acts")[0].text
