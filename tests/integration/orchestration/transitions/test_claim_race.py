"""Four schedulers, 10,000 pending steps: none is claimed twice; without locks and versions some are (P21)."""

from collections import Counter

import pytest
from django.db import connection

from orchestration.models import Policy, Step, Task
from orchestration.transitions.create import NewTask, create
from tests.support.together import processes

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 10_000
SCHEDULERS = 4


@pytest.fixture
def _pending():
    Policy.objects.filter(agent="greeter").update(window=MANY, time_allowed=600)
    new = (NewTask(workflow="greet", reference=str(n), data={"name": "A"}) for n in range(MANY))
    create(list(new))
    with connection.cursor() as cursor:
        # as autovacuum does sooner or later; plans for empty tables take ten times as long
        cursor.execute("ANALYZE")


def race(how):
    """Let the schedulers claim all at once; return how often each step was claimed."""
    arguments = [[f"scheduler-{number}", how] for number in range(SCHEDULERS)]
    ended = processes("tests.integration.orchestration.transitions.claimer", arguments)
    return Counter(int(line) for _, printed in ended for line in printed.split())


@pytest.mark.usefixtures("_pending")
def test_no_step_is_claimed_twice():
    claims = race("with-locks")
    assert len(claims) == MANY
    assert set(claims.values()) == {1}
    assert set(Step.objects.filter(name="hello").values_list("attempt", flat=True)) == {1}
    assert set(Task.objects.values_list("state", flat=True)) == {"processing"}
    holders = Step.objects.filter(name="hello").values_list("locked_by", flat=True).distinct()
    assert len(holders) > 1  # there was a race to win


@pytest.mark.usefixtures("_pending")
def test_no_step_is_claimed_twice_without_the_locks():
    """Each write names the version that was read: a claim that was overtaken is none."""
    claims = race("without-locks")
    assert set(claims.values()) == {1}
    claimed = Step.objects.filter(name="hello", process_state="processing")
    assert set(claimed.values_list("attempt", flat=True)) == {1}
    assert claimed.count() == len(claims)


@pytest.mark.usefixtures("_pending")
def test_steps_are_claimed_twice_without_locks_and_versions():
    claims = race("without-guards")
    assert max(claims.values()) > 1
