"""Concurrent actions of two operators: one is done; the other sees who was first, and when."""

import re
from functools import partial

import pytest
from django.urls import reverse

from orchestration.models import Alert, Event, Hold, Step
from orchestration.operations.undo_preview import undo_preview
from tests.support.engine import in_error, new_task, run_to_end
from tests.support.operators import browser, person
from tests.support.page import conflict_of
from tests.support.together import at_once

pytestmark = pytest.mark.django_db(transaction=True)
RIGHTS = ("operate", "see_personal", "resubmit", "correct", "undo", "hold", "acknowledge")


def address(route, *ids):
    return reverse(f"ops:{route}", args=ids)


def change(step):
    return address("change", step.id), {"payload": '{"to": "Grace"}'}


def by_hand(step):
    return address("by_hand", step.id), {"payload": '{"id": "g9"}'}


def resubmit(step):
    return address("resubmit", step.id), {}


def undo(step):
    return address("undo", step.task_id), {"seen": undo_preview(step.task_id)["seen"]}


def hold(step):
    return f"{address('hold')}?task={step.task_id}", {}


def acknowledge(step):
    return address("acknowledge", step.alert_id), {}


@pytest.mark.parametrize(
    ("first", "second"),
    [(change, by_hand), (resubmit, change), (undo, undo), (hold, hold), (acknowledge, acknowledge)],
)
def test_second_of_two_concurrent_actions_is_refused(first, second):
    run_to_end(new_task())
    step = in_error()
    asked = {"ann": first(step), "bob": second(step)}
    clients = {name: browser(person(name, *RIGHTS)) for name in asked}

    def act(name):
        url, data = asked[name]
        return clients[name].post(url, {"attempt": 1, "reason": f"reason of {name}", **data})

    answers = at_once({name: partial(act, name) for name in asked})
    assert sorted(answer.status_code for answer in answers.values()) == [303, 409]
    winner, loser = sorted(answers, key=lambda name: answers[name].status_code)
    actor, sentence = conflict_of(answers[loser])
    assert actor == winner
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", sentence)
    of_tasks = Event.objects.exclude(kind="incident")  # that of an alert is acknowledged with it
    decided = of_tasks.filter(actor__in=asked).values_list("actor", flat=True)
    assert set(decided) == {winner}
    assert len(decided) == 1
    assert Hold.objects.count() <= 1
    assert Alert.objects.filter(acknowledged_at__isnull=False).count() <= 1
    assert Step.objects.get(id=step.id).generation <= 2
