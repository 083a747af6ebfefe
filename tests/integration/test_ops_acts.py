"""What an operator does about one task: allowed, forbidden, and changed meanwhile."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration import registry
from orchestration.api import field
from orchestration.models import Alert, Attempt, Event, Hold, Step
from orchestration.models.fields import DatabaseNow
from orchestration.queries import undo_preview
from orchestration.recovery import KEY_FORGOTTEN
from orchestration.transitions.holds import hold, release
from orchestration.transitions.record import record
from orchestration.transitions.resubmit import resubmit as resubmit_step
from orchestration.transitions.undo import undo
from tests.engine import (
    claimed,
    in_error,
    irreversible,
    new_task,
    reply_to,
    run_to_end,
    states,
    step_of,
)  # fmt: skip
from tests.operators import browser, gave_up, person, press, words

pytestmark = pytest.mark.django_db


def able(*permissions, name="ann"):
    return browser(person(name, "operate", "see_personal", *permissions))


def corrector(name="ann"):
    return able("resubmit", "correct", name=name)


def of(route, thing):
    return reverse(f"ops:{route}", args=[thing.id])


def change(client, step, *, attempt=None, reason="the name was wrong", **fields):
    typed = {"attempt": step.attempt if attempt is None else attempt, "reason": reason}
    typed |= {"value.to": step.request["to"], **fields}
    return client.post(of("change", step), typed)


def by_hand(client, step, result='{"id": "g9"}', *, attempt=None, reason="rang them up"):
    typed = {"attempt": step.attempt if attempt is None else attempt, "reason": reason}
    return client.post(of("by_hand", step), {**typed, "value": result})


def ask_undo(client, task, *, seen=None, reason="they changed their mind", **fields):
    seen = seen or undo_preview(task.id)["seen"]
    return client.post(of("undo", task), {"seen": seen, "reason": reason, **fields})


def last_event(task) -> Event:
    return Event.objects.filter(task=task).order_by("-id")[0]


# --- resubmit with changes -----------------------------------------------------------------------
def test_a_changed_input_is_sent_under_a_new_key_and_both_are_kept():
    client, task = corrector(), new_task()
    step = in_error(task)
    page = words(client.get(of("change", step)))
    assert "A new key: the service definitely rejected the last request" in page
    assert f"{task.id}:hello:do:2" in page
    answer = change(client, step, **{"value.to": "Grace"})
    assert answer.status_code == 303
    step.refresh_from_db()
    assert (step.process_state, step.generation, step.request) == ("pending", 2, {"to": "Grace"})
    event = last_event(task)
    assert (event.actor, event.reason) == ("ann", "the name was wrong")
    assert (event.detail["before"], event.detail["after"]) == ({"to": "Ada"}, {"to": "Grace"})
    told = words(client.get(of("task", task)))
    assert "resubmitted with another input" in told
    assert "to : Ada → Grace" in told
    assert "New key" in told


def test_what_was_not_touched_stays_and_keeps_its_key():
    client, task = corrector(), new_task()
    step = gave_up(task, "transient")
    assert change(client, step, reason="they say it works now").status_code == 303
    step.refresh_from_db()
    assert (step.generation, step.request) == (1, {"to": "Ada"})
    assert "before" not in last_event(task).detail


def test_what_may_have_been_done_is_not_changed_before_somebody_found_out():
    client, task = corrector(), new_task()
    step = gave_up(task, "unknown")
    page = words(client.get(of("change", step)))
    assert "It may have been done. Only the same request under the same key can tell" in page
    refused = change(client, step, **{"value.to": "Grace"})
    assert refused.status_code == 422
    assert "its input cannot be changed" in refused.text
    assert "it was: Ada" in refused.text
    step.refresh_from_db()
    assert step.process_state == "error"
    found_out = change(client, step, **{"value.to": "Grace", "nothing_done": "on"})
    assert found_out.status_code == 303
    step.refresh_from_db()
    assert (step.generation, step.in_doubt, step.request["to"]) == (2, False, "Grace")


def test_where_the_key_is_forgotten_only_a_word_helps():
    client, task = corrector(), new_task()
    step = gave_up(task, "unknown")
    step.error_code = KEY_FORGOTTEN
    step.save(update_fields=["error_code"])
    page = client.get(of("task", task)).text
    assert "the service has forgotten the key by now" in page
    assert f'action="{of("resubmit", step)}"' not in page
    assert press(client, step).status_code == 409
    refused = change(client, step)
    assert refused.status_code == 422
    assert "has forgotten the key by now" in refused.text
    assert change(client, step, nothing_done="on").status_code == 303


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"whole": "1", "value": "[1"}, "This is not JSON"),
        ({"whole": "1", "value": "[1]"}, "is not of type"),
        ({"whole": "1", "value": '{"to": 7}'}, "is not of type"),
        ({"whole": "1", "value": '{"to": "Ada", "more": 1}'}, "Additional properties"),
    ],
)
def test_an_input_that_the_action_does_not_take_is_refused_with_the_place(typed, said):
    client, step = corrector(), in_error()
    address = of("change", step) + "?whole=1"
    assert "All of it as JSON" in client.get(of("change", step)).text
    data = {"attempt": 1, "reason": "so", **typed}
    refused = client.post(address, data)
    assert refused.status_code == 422
    assert said in refused.text
    step.refresh_from_db()
    assert step.process_state == "error"


def test_a_step_changed_meanwhile_says_by_whom():
    step = in_error()
    assert change(corrector("ann"), step, **{"value.to": "Grace"}).status_code == 303
    bob = corrector("bob")
    for late in (
        change(bob, step, **{"value.to": "Edith"}),
        by_hand(bob, step),
        bob.get(of("change", step)),
        bob.get(of("by_hand", step)),
    ):
        assert late.status_code == 409
        assert "<strong>ann</strong>" in late.text
        assert "the name was wrong" in late.text
    step.refresh_from_db()
    assert (step.request, step.generation) == ({"to": "Grace"}, 2)


def test_whoever_may_not_see_personal_data_changes_around_it(monkeypatch):
    greet = replace(registry.workflows["greet"], personal=[field("name")])
    monkeypatch.setitem(registry.workflows, "greet", greet)
    step = in_error()
    client = browser(person("bob", "operate", "resubmit", "correct"))
    page = client.get(of("change", step)).text
    assert "Ada" not in page
    assert "Hidden from you" in page
    assert client.get(of("change", step) + "?whole=1").text.count("Ada") == 0
    answer = client.post(of("change", step), {"attempt": 1, "reason": "try"})
    assert answer.status_code == 303
    step.refresh_from_db()
    assert step.request == {"to": "Ada"}


# --- done by hand --------------------------------------------------------------------------------
def test_a_step_done_by_hand_lets_the_others_go_on_with_its_result():
    client, task = able("correct"), new_task()
    step = in_error(task)
    assert "What it was asked to do" in client.get(of("by_hand", step)).text
    assert by_hand(client, step).status_code == 303
    step.refresh_from_db()
    assert (step.process_state, step.result) == ("skipped", {"id": "g9"})
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
    ("result", "reason", "said"),
    [
        ("{", "why", "This is not JSON"),
        ("7", "why", "is not of type"),
        ('{"id": "1"}', " ", "Say why"),
    ],
)
def test_a_word_without_a_result_or_reason_is_none(result, reason, said):
    client, step = able("correct"), in_error()
    refused = by_hand(client, step, result, reason=reason)
    assert refused.status_code == 422
    assert said in refused.text
    step.refresh_from_db()
    assert step.process_state == "error"


# --- undo ----------------------------------------------------------------------------------------
def test_an_undo_shows_what_it_does_and_then_does_that():
    client, task = able("undo"), new_task()
    run_to_end(task)
    page = words(client.get(of("undo", task)))
    assert page.index("again") < page.index("greeter.take_back")
    assert f"{task.id}:hello:undo:1" in page
    assert "No money goes back" in page
    assert ask_undo(client, task).status_code == 303
    task.refresh_from_db()
    assert task.state == "undoing"
    event = Event.objects.get(task=task, kind="undo")
    assert (event.actor, event.reason) == ("ann", "they changed their mind")
    told = client.get(of("task", task)).text
    assert reverse("ops:undo", args=[task.id]) not in told


def test_money_is_named_with_what_is_in_doubt():
    client, task = able("undo"), new_task()
    Step.objects.filter(task=task, name="hello").update(charges={"amount": 1234, "currency": "EUR"})
    claimed()
    page = words(client.get(of("undo", task)))
    assert "12.34 EUR goes back in all, what is in doubt included" in page
    assert "in doubt" in page
    assert "Never to run: again." in page


def test_an_undo_that_would_do_something_else_by_now_is_refused():
    client, task = able("undo"), new_task()
    seen = undo_preview(task.id)["seen"]
    run_to_end(task)
    refused = ask_undo(client, task, seen=seen)
    assert refused.status_code == 409
    assert "would do something else by now" in refused.text
    assert reverse("ops:undo", args=[task.id]) in refused.text
    task.refresh_from_db()
    assert task.state == "processed"


def test_the_second_to_undo_is_told_who_was_first():
    task = new_task()
    run_to_end(task)
    seen = undo_preview(task.id)["seen"]
    assert ask_undo(able("undo"), task).status_code == 303
    bob = able("undo", name="bob")
    for late in (ask_undo(bob, task, seen=seen), bob.get(of("undo", task))):
        assert late.status_code == 409
        assert "<strong>ann</strong> asked for the task to be undone" in " ".join(late.text.split())
    assert Event.objects.filter(task=task, kind="undo").count() == 1


def test_whoever_decides_about_a_step_of_a_task_that_is_undone_learns_of_that():
    task = new_task()
    step = in_error(task)
    undo(task.id, actor="ann", reason="no longer wanted")
    late = press(able("resubmit", name="bob"), step)
    assert late.status_code == 409
    assert "<strong>ann</strong> asked for the task to be undone" in " ".join(late.text.split())
    assert "no longer wanted" in late.text


def test_what_stands_forbids_the_undo_to_those_who_may_not_force():
    task = irreversible(new_task())
    client = able("undo")
    page = words(client.get(of("undo", task)))
    assert "they heard it" in page
    assert "Your account does not have that right" in page
    assert '<button type="submit" class="button danger">' not in client.get(of("undo", task)).text
    assert ask_undo(client, task, force="on").status_code == 403
    task.refresh_from_db()
    assert task.state == "processed"


def test_whoever_may_force_says_so():
    task = irreversible(new_task())
    client = able("undo", "force_undo")
    hesitant = ask_undo(client, task)
    assert hesitant.status_code == 422
    assert "say that the rest shall be" in hesitant.text
    assert ask_undo(client, task, force="on").status_code == 303
    event = Event.objects.get(task=task, kind="undo")
    assert event.detail["forced"]
    assert event.detail["standing"] == ["again"]


# --- hold, release, acknowledge --------------------------------------------------------------------
def test_a_task_is_held_and_released_by_name_and_with_reasons():
    client, task = able("hold"), new_task()
    address = reverse("ops:hold") + f"?task={task.id}"
    assert address.replace("&", "&amp;") in client.get(of("task", task)).text
    assert client.post(address, {"reason": "wait for Bob"}).status_code == 303
    assert claimed() == []
    held = Hold.objects.get(task=task, until=None)
    page = words(client.get(of("task", task)))
    assert "Held by ann" in page
    assert "“hello” waits: held by ann because: wait for Bob." in page
    second = able("hold", name="bob").post(address, {"reason": "me too"})
    assert second.status_code == 409
    assert "<strong>ann</strong> held it" in " ".join(second.text.split())
    assert client.post(of("release", held), {"reason": "Bob came"}).status_code == 303
    late = able("hold", name="eve").post(of("release", held), {"reason": "now"})
    assert late.status_code == 409
    assert "<strong>ann</strong> released it" in " ".join(late.text.split())
    kinds = Event.objects.filter(task=task).order_by("id").values_list("kind", "actor", "reason")
    assert list(kinds) == [("held", "ann", "wait for Bob"), ("released", "ann", "Bob came")]


@pytest.mark.parametrize("target", ["agent=greeter", "step=greet/hello", "everything=1"])
def test_every_level_can_be_held_and_released(target):
    client = able("hold")
    new_task()
    address = f"{reverse('ops:hold')}?{target}"
    assert (
        f"hold --{target.replace('=1', '').replace('=', ' ')} --reason" in client.get(address).text
    )
    assert client.post(address, {"reason": "they move"}).status_code == 303
    assert claimed() == []
    held = Hold.objects.get(until=None)
    assert "they move" in client.get(reverse("ops:agents")).text
    assert client.post(address, {"reason": "again"}).status_code == 409
    assert client.get(of("release", held)).status_code == 200
    assert client.post(of("release", held), {"reason": "they moved"}).status_code == 303
    held.refresh_from_db()
    assert (held.released_by, held.released_why) == ("ann", "they moved")
    told = Event.objects.filter(task=None).order_by("id").values_list("kind", "detail__target")
    assert list(told) == [("held", held.target), ("released", held.target)]


@pytest.mark.parametrize(
    "target",
    ["", "agent=nobody", "step=greet", "step=greet/bye", "task=1", "agent=greeter&everything=1",
     "task=00000000-0000-0000-0000-000000000000"],
)  # fmt: skip
def test_what_is_not_there_cannot_be_held(target):
    client = able("hold")
    address = f"{reverse('ops:hold')}?{target}"
    assert client.get(address).status_code == 404
    assert client.post(address, {"reason": "why"}).status_code == 404
    assert not Hold.objects.exists()


def test_what_the_engine_holds_is_not_released_by_hand():
    held = hold(
        agent="greeter", cause="no_worker", actor="housekeeper", reason="no worker serves it"
    )
    client = able("hold")
    refused = client.post(of("release", held), {"reason": "go"})
    assert refused.status_code == 409
    assert "It ends by itself" in refused.text
    held.refresh_from_db()
    assert held.until is None


def test_an_alert_is_taken_care_of_once_and_the_others_see_by_whom():
    step = in_error()
    task_page = reverse("ops:task", args=[step.task_id])
    ann, bob = able("acknowledge"), able("acknowledge", name="bob")
    address = reverse("ops:acknowledge", args=[step.alert_id])
    assert address in bob.get(task_page).text
    taken = ann.post(address, {"next": task_page})
    assert (taken.status_code, taken["Location"]) == (303, task_page)
    seen = bob.get(task_page).text
    assert address not in seen
    assert "<strong>ann</strong> takes care of it" in seen
    late = bob.post(address, {"next": "https://elsewhere.example/"})
    assert late.status_code == 409
    assert "<strong>ann</strong> acknowledged it" in " ".join(late.text.split())
    assert "elsewhere" not in late.text
    event = Event.objects.get(kind="acknowledged")
    assert (event.actor, event.task_id, event.detail["alert"]) == ("ann", None, step.alert_id)


# --- what is offered ------------------------------------------------------------------------------
ACTS = {
    "resubmit": ("resubmit", "Resubmit “hello”"),
    "hold": ("hold", "Hold…"),
    "undo": ("undo", "Undo…"),
    "correct": ("by_hand", "It was done by hand…"),
    "acknowledge": ("acknowledge", "I take care of it"),
}


@pytest.mark.parametrize("granted", [None, *ACTS])
def test_only_what_one_may_do_is_offered(granted):
    step = in_error()
    page = browser(person("ann", "operate", *([granted] if granted else [])))
    text = page.get(reverse("ops:task", args=[step.task_id])).text
    for permission, (_, said) in ACTS.items():
        assert (said in text) == (permission == granted)
    assert ("manage.py tasks resubmit" in text) == (granted == "resubmit")


def test_a_race_between_two_decisions_has_one_winner():
    task = new_task()
    step = in_error(task)
    assert resubmit_step(step.id, attempt=1, actor="ann", reason="first") is None
    (request,) = claimed()
    record([reply_to(request, "rejected")])
    late = by_hand(able("correct", name="bob"), step, attempt=1)
    assert late.status_code == 409
    assert "failed again since" in late.text
    assert release(999, actor="bob", reason="none") is not None


def test_a_request_to_come_says_what_will_be_put_in():
    task = new_task()
    claimed()
    page = able().get(of("task", task)).text
    assert "«id of the result of hello»" in page
    assert "«name of the input»" in page


def queries_of(client, address) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


def test_many_steps_attempts_and_events_cost_no_more_queries_than_few():
    client = able("resubmit", "correct", "undo", "hold", "acknowledge")
    step = in_error()
    pages = [
        reverse("ops:task", args=[step.task_id]),
        reverse("ops:undo", args=[step.task_id]),
        of("change", step),
    ]
    few = [queries_of(client, page) for page in pages]
    Step.objects.bulk_create(
        Step(
            task_id=step.task_id, name=f"more-{number}", agent="greeter", action="greet",
            request={"to": "Ada"}, process_state="error", alert_id=step.alert_id, attempt=1,
        )
        for number in range(40)
    )  # fmt: skip
    Attempt.objects.bulk_create(
        Attempt(
            step_id=one, number=number, generation=1, scheduler="s-1", agent="a-1",
            dispatched_at=DatabaseNow(), outcome="transient",
        )
        for one in step.task.steps.values_list("id", flat=True)
        for number in range(2, 12)
    )  # fmt: skip
    Event.objects.bulk_create(
        Event(task_id=step.task_id, step_id=step.id, kind="retry", actor="s", reason=str(number))
        for number in range(300)
    )
    assert [queries_of(client, page) for page in pages] == few
    text = client.get(pages[0]).text
    assert "Only the newest attempts and events are shown." in text
    assert "“more-39”" in text
