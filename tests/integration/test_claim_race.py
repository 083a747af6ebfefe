"""Four schedulers, 10,000 pending steps: none is claimed twice; without the locks some are (P21)."""

import os
import subprocess
import sys
from collections import Counter
from urllib.parse import quote

import pytest
from django.db import connection

from orchestration.models import Policy, Step, Task
from orchestration.transitions import NewTask, create

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 10_000
SCHEDULERS = 4


@pytest.fixture
def _pending():
    Policy.objects.filter(agent="greeter").update(window=MANY, time_allowed=600)
    new = (NewTask(workflow="greet", reference=str(n), data={"name": "A"}) for n in range(MANY))
    create(list(new))


def race(how):
    """Let the schedulers claim all at once; return how often each step was claimed."""
    known = connection.settings_dict
    host = known["OPTIONS"].get("host") or known["HOST"]
    url = f"postgresql://{known['USER']}@/{known['NAME']}?host={quote(host)}"
    environment = {**os.environ, "DATABASE_URL": url}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.integration.claimer", f"scheduler-{number}", how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for number in range(SCHEDULERS)
    ]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    return Counter(
        int(line) for process in processes for line in process.communicate(timeout=100)[0].split()
    )


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
def test_without_the_locks_some_are():
    claims = race("without-locks")
    assert max(claims.values()) > 1
