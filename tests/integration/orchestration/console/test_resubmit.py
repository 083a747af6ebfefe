"""An operator resubmits a failed step: once, by name, with a reason (P25)."""

from functools import partial

import pytest
from django.urls import reverse

from orchestration.messaging import queues
from orchestration.models import Alert, Event, Step
from orchestration.transitions.replies import record
from tests.support.engine import claimed, in_error, new_task, reply_to, run_to_end, step_of
from tests.support.operators import browser, gave_up, operator, person, press
from tests.support.page import conflict_of, page, poll_of
from tests.support.together import at_once

pytestmark = pytest.mark.django_db


def resubmissions(step) -> list[tuple[str, str]]:
    events = Event.objects.filter(step=step, kind="resubmitted").order_by("id")
    return list(events.values_list("actor", "reason"))


def test_failed_step_is_resubmitted_and_the_task_ends():
    client, task = operator("ann"), new_task("t-1")
    step = in_error(task)
    response = press(client, step, reason="  the name was corrected ")
    assert response.status_code == 303
    assert response["Location"] == reverse("ops:task", args=[task.id])
    assert resubmissions(step) == [("ann", "the name was corrected")]
    step.refresh_from_db()
    assert (step.process_state, step.failure_count, step.generation) == ("pending", 0, 2)
    assert not Alert.objects.filter(closed_at=None).exists()
    followed = page(client.get(response["Location"]))
    assert followed.only("#messages").only(".success")
    assert "the name was corrected" not in followed.section("h-events").text
    trusted = browser(person("bea", "operate", "see_personal"))
    shown = page(trusted.get(response["Location"])).section("h-events")
    assert "the name was corrected" in shown.text
    run_to_end(task)
    assert task.state == "processed"


@pytest.mark.django_db(transaction=True)
def test_scheduler_is_rung_after_the_commit():
    step = in_error()
    queues.connection().flushdb()
    press(operator(), step)
    assert queues.connection().exists(queues.flag(queues.SCHEDULER))
    assert queues.queue(queues.SCHEDULER).count == 1


def test_second_resubmit_names_the_first_user():
    step = in_error()
    assert press(operator("ann"), step, reason="looks fine now").status_code == 303
    for more, shown in (((), False), (("see_personal",), True)):
        bob = browser(person(f"bob-{shown}", "operate", "resubmit", *more))
        actor, sentence = conflict_of(press(bob, step))
        assert actor == "ann"
        assert ("looks fine now" in sentence) == shown
    assert resubmissions(step) == [("ann", "looks fine now")]


def test_resubmit_in_a_second_tab_reports_that_nothing_was_done():
    client, step = operator("ann"), in_error()
    won = press(client, step)
    late = press(client, step)
    assert conflict_of(late)[0] == "ann"
    assert page(late).only("#messages").text == ""
    assert page(client.get(won["Location"])).only("#messages").only(".success")
    step.refresh_from_db()
    assert step.generation == 2


def test_double_click_is_reported():
    client, step = operator(), in_error()
    press(client, step)
    refused = press(client, step)
    actor, sentence = conflict_of(refused)
    assert actor == "ann"
    assert "you resubmitted it" in sentence
    assert len(resubmissions(step)) == 1


@pytest.mark.django_db(transaction=True)
def test_concurrent_resubmits_have_one_winner():
    step = in_error()
    clients = {name: operator(name) for name in ("ann", "bob")}
    answers = at_once({name: partial(press, clients[name], step) for name in clients})
    assert sorted(answer.status_code for answer in answers.values()) == [303, 409]
    winner, loser = sorted(answers, key=lambda name: answers[name].status_code)
    assert conflict_of(answers[loser])[0] == winner
    assert [actor for actor, _ in resubmissions(step)] == [winner]
    step.refresh_from_db()
    assert (step.generation, step.process_state) == (2, "pending")


def test_resubmission_of_an_older_failure_is_refused():
    client, step = operator("ann"), in_error()
    press(client, step, reason="first try")
    (request,) = claimed()
    record([reply_to(request, "rejected", code="still_refused")])
    refused = press(operator("bob"), step, attempt=1)
    assert conflict_of(refused)[0] == "ann"
    assert "failed again since" in page(refused).only("#content").text
    assert len(resubmissions(step)) == 1
    step.refresh_from_db()
    assert (step.process_state, step.attempt) == ("error", 2)


def test_unknown_attempt_is_refused():
    step = in_error()
    refused = press(operator(), step, attempt=7)
    assert conflict_of(refused)[0] == ""
    assert resubmissions(step) == []


def test_processed_step_cannot_be_resubmitted():
    task = new_task()
    run_to_end(task)
    step = step_of(task)
    refused = press(operator(), step)
    actor, sentence = conflict_of(refused)
    assert actor == ""
    assert "processed" in sentence
    step.refresh_from_db()
    assert step.process_state == "processed"


@pytest.mark.parametrize("reason", ["", "   "])
def test_resubmit_without_a_reason_is_refused(reason):
    client, step = operator(), in_error()
    response = press(client, step, reason=reason)
    assert response.status_code == 422
    form = page(response).only("form[data-resubmit]")
    assert form.only(".wrong")["id"] == f"wrong-{step.id}"
    assert form.only('[name="reason"]')["aria-invalid"] == "true"
    assert poll_of(response).startswith(f"{reverse('ops:task', args=[step.task_id])}?seen=")
    step.refresh_from_db()
    assert step.process_state == "error"


@pytest.mark.parametrize("attempt", ["", "one", "-1", str(2**31)])
def test_malformed_attempt_is_refused(attempt):
    client, step = operator(), in_error()
    response = press(client, step, attempt=attempt, reason="typed before")
    assert response.status_code == 422
    form = page(response).only("form[data-resubmit]")
    assert form.only('[name="reason"]')["value"] == "typed before"
    assert resubmissions(step) == []


def form_of(client, step):
    shown = page(client.get(reverse("ops:task", args=[step.task_id])))
    return shown.only("form[data-resubmit]")


def test_form_names_the_attempt_that_it_shows():
    form = form_of(operator(), in_error())
    assert form.only('[type="hidden"][name="attempt"]')["value"] == "1"


def test_new_key_is_announced_and_used_after_a_rejection():
    client, step = operator(), in_error()
    key = f"{step.task_id}:hello:do:2"
    announced = form_of(client, step).only("[data-key]")
    assert (announced["data-key"], announced.only("code").text) == (key, key)
    assert "A new idempotency key is used (generation 2)" in announced.text
    press(client, step)
    assert Step.objects.get(id=step.id).key == key


def test_same_key_is_announced_and_used_after_an_unknown_outcome():
    client, step = operator(), gave_up(new_task())
    key = f"{step.task_id}:hello:do:1"
    announced = form_of(client, step).only("[data-key]")
    assert (announced["data-key"], announced.only("code").text) == (key, key)
    assert "The same idempotency key is used: the effect may have happened" in announced.text
    press(client, step)
    assert Step.objects.get(id=step.id).key == key


def test_resubmit_without_permission_is_refused():
    step = in_error()
    assert press(browser(person("bob", "operate")), step).status_code == 403
    step.refresh_from_db()
    assert step.process_state == "error"
