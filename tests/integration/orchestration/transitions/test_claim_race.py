"""Four schedulers, 10,000 pending steps: none is claimed twice; without locks and versions some are (P21)."""

from collections import Counter

import pytest
from django.db import connection

from orchestration.models import Policy, Step, Task
from orchestration.transitions.create import NewTask, create
from tests.support.together import processes

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 10_000
ENOUGH = 2_000  # for schedulers without guards to meet
SCHEDULERS = 4


def race(how, number):
    """Let the schedulers claim that number of steps at once; return how often each was claimed."""
    Policy.objects.filter(agent="greeter").update(window=MANY, time_allowed=600)
    new = (NewTask(workflow="greet", reference=str(n), data={"name": "A"}) for n in range(number))
    create(list(new))
    with connection.cursor() as cursor:
        # as autovacuum does sooner or later; plans for empty tables take ten times as long
        cursor.execute("ANALYZE")
    arguments = [[f"scheduler-{place}", how] for place in range(SCHEDULERS)]
    ended = processes("tests.integration.orchestration.transitions.claimer", arguments)
    return Counter(int(line) for _, printed in ended for line in printed.split())


def test_no_step_is_claimed_twice():
    claims = race("with-locks", MANY)
    assert len(claims) == MANY
    assert set(claims.values()) == {1}
    assert set(Step.objects.filter(name="hello").values_list("attempt", flat=True)) == {1}
    assert set(Task.objects.values_list("state", flat=True)) == {"processing"}
    holders = Step.objects.filter(name="hello").values_list("locked_by", flat=True).distinct()
    assert len(holders) > 1  # there was a race to win


def test_no_step_is_claimed_twice_without_the_locks():
    """Each write names the version that was read: a claim that was overtaken is none."""
    claims = race("without-locks", MANY)
    assert set(claims.values()) == {1}
    claimed = Step.objects.filter(name="hello", process_state="processing")
    assert set(claimed.values_list("attempt", flat=True)) == {1}
    assert claimed.count() == len(claims)


def test_steps_are_claimed_twice_without_locks_and_versions():
    claims = race("without-guards", ENOUGH)
    assert max(claims.values()) > 1
