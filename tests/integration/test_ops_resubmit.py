"""An operator resubmits a failed step: once, by name, with a reason (P25)."""

from functools import partial

import pytest
from django.urls import reverse

from orchestration import queues
from orchestration.models import Alert, Event, Step
from orchestration.transitions.record import record
from tests.engine import claimed, in_error, new_task, reply_to, run_to_end, step_of
from tests.operators import browser, gave_up, operator, person, press
from tests.together import at_once

pytestmark = pytest.mark.django_db


def page_of(client, step):
    return client.get(reverse("ops:task", args=[step.task_id])).text


def resubmissions(step) -> list[tuple[str, str]]:
    events = Event.objects.filter(step=step, kind="resubmitted").order_by("id")
    return list(events.values_list("actor", "reason"))


def test_a_failed_step_is_tried_again_and_the_task_ends():
    client, task = operator("ann"), new_task("t-1")
    step = in_error(task)
    response = press(client, step, reason="  the name was corrected ")
    assert response.status_code == 303
    assert response["Location"] == reverse("ops:task", args=[task.id])
    assert resubmissions(step) == [("ann", "the name was corrected")]
    step.refresh_from_db()
    assert (step.process_state, step.failure_count, step.generation) == ("pending", 0, 2)
    assert not Alert.objects.filter(closed_at=None).exists()
    followed = client.get(response["Location"]).text
    assert "“hello” was resubmitted" in followed
    assert "the name was corrected" in followed
    run_to_end(task)
    assert task.state == "processed"


@pytest.mark.django_db(transaction=True)
def test_the_scheduler_is_woken_once_it_is_committed():
    step = in_error()
    queues.connection().flushdb()
    press(operator(), step)
    assert queues.connection().exists(queues.flag(queues.SCHEDULER))
    assert queues.queue(queues.SCHEDULER).count == 1


def test_the_second_is_told_who_was_first():
    step = in_error()
    assert press(operator("ann"), step, reason="looks fine now").status_code == 303
    refused = press(operator("bob"), step)
    assert refused.status_code == 409
    assert "<strong>ann</strong>" in refused.text
    assert "looks fine now" in refused.text
    assert resubmissions(step) == [("ann", "looks fine now")]


def test_in_two_tabs_the_second_says_only_that_nothing_was_done():
    client, step = operator("ann"), in_error()
    won = press(client, step)
    late = press(client, step)
    assert late.status_code == 409
    assert "Nothing was done: somebody was first" in late.text
    assert "was resubmitted" not in late.text
    assert "“hello” was resubmitted" in client.get(won["Location"]).text
    step.refresh_from_db()
    assert step.generation == 2


def test_whoever_presses_twice_is_told_so():
    client, step = operator(), in_error()
    press(client, step)
    refused = press(client, step)
    assert refused.status_code == 409
    assert "You" in refused.text
    assert len(resubmissions(step)) == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_at_the_same_time_one_wins_and_the_other_learns_who():
    step = in_error()
    clients = {name: operator(name) for name in ("ann", "bob")}
    answers = at_once({name: partial(press, clients[name], step) for name in clients})
    assert sorted(answer.status_code for answer in answers.values()) == [303, 409]
    winner, loser = sorted(answers, key=lambda name: answers[name].status_code)
    assert f"<strong>{winner}</strong>" in answers[loser].text
    assert [actor for actor, _ in resubmissions(step)] == [winner]
    step.refresh_from_db()
    assert (step.generation, step.process_state) == (2, "pending")


def test_whoever_saw_an_older_failure_decides_anew():
    client, step = operator("ann"), in_error()
    press(client, step, reason="first try")
    (request,) = claimed()
    record([reply_to(request, "rejected", code="still_refused")])
    refused = press(operator("bob"), step, attempt=1)
    assert refused.status_code == 409
    assert "<strong>ann</strong>" in refused.text
    assert "failed again since" in refused.text
    assert len(resubmissions(step)) == 1
    step.refresh_from_db()
    assert (step.process_state, step.attempt) == ("error", 2)


def test_an_attempt_that_never_was_is_refused():
    step = in_error()
    refused = press(operator(), step, attempt=7)
    assert refused.status_code == 409
    assert "was changed since you looked" in refused.text
    assert resubmissions(step) == []


def test_a_step_that_is_done_cannot_be_resubmitted():
    task = new_task()
    run_to_end(task)
    step = step_of(task)
    refused = press(operator(), step)
    assert refused.status_code == 409
    assert "is not in error: it is processed" in refused.text
    step.refresh_from_db()
    assert step.process_state == "processed"


@pytest.mark.parametrize("reason", ["", "   "])
def test_without_a_reason_nothing_happens(reason):
    client, step = operator(), in_error()
    response = press(client, step, reason=reason)
    assert response.status_code == 422
    assert "Say why" in response.text
    assert 'aria-invalid="true"' in response.text
    assert f'hx-get="{reverse("ops:task", args=[step.task_id])}?seen=' in response.text
    step.refresh_from_db()
    assert step.process_state == "error"


@pytest.mark.parametrize("attempt", ["", "one", "-1", str(2**31)])
def test_an_attempt_that_is_none_is_refused(attempt):
    client, step = operator(), in_error()
    response = press(client, step, attempt=attempt, reason="typed before")
    assert response.status_code == 422
    assert 'value="typed before"' in response.text
    assert resubmissions(step) == []


def test_the_form_asks_about_the_attempt_it_shows():
    client, step = operator(), in_error()
    assert '<input type="hidden" name="attempt" value="1">' in page_of(client, step)


def test_after_a_refusal_for_good_a_new_key_is_announced_and_used():
    client, step = operator(), in_error()
    page = page_of(client, step)
    assert "refused this for good: a new key is used (generation 2)" in page
    assert f"{step.task_id}:hello:do:2" in page
    press(client, step)
    assert Step.objects.get(id=step.id).key == f"{step.task_id}:hello:do:2"


def test_after_an_unknown_outcome_the_same_key_is_announced_and_used():
    client, task = operator(), new_task()
    step = gave_up(task)
    page = page_of(client, step)
    assert "The effect may have happened: the same key is used" in page
    assert "a new key" not in page
    press(client, step)
    assert Step.objects.get(id=step.id).key == f"{task.id}:hello:do:1"


def test_without_permission_nothing_happens_even_by_hand():
    step = in_error()
    assert press(browser(person("bob", "operate")), step).status_code == 403
    step.refresh_from_db()
    assert step.process_state == "error"
