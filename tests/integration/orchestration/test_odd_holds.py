"""Holds with times that no clock has yet reached, or that Python does not know, stop no sweep and no page."""

from datetime import timedelta

import pytest
from django.core.management import call_command

from orchestration.cluster.leader_memory import Memory
from orchestration.database import sql
from orchestration.housekeeping import housekeeper
from orchestration.models import Alert, Hold, Step, Task
from orchestration.models.fields import DatabaseNow
from tests.support.engine import claimed, in_error, new_task, staff, sweep
from tests.support.odd_times import ODD_TIMES
from tests.support.operators import LEADER, browser, person

pytestmark = pytest.mark.django_db
LONG_AGO = "2020-01-01"
HOLD = """
INSERT INTO orchestration_hold (scope, agent, workflow, step, task_id, cause, reason, actor, since, until,
    released_by, released_why)
VALUES (%(scope)s, %(agent)s, %(workflow)s, %(step)s, %(task)s, 'hand', 'r', 'ann', %(since)s, %(until)s,
    '', '')
"""
SCOPES = (
    {"scope": "all"},
    {"scope": "agent", "agent": "greeter"},
    {"scope": "step", "workflow": "greet", "step": "hello"},
    {"scope": "task"},
)


def hold_all(task, since, until):
    """Write a hold of each scope, as only SQL can: people and the engine begin and end them now."""
    for scope in SCOPES:
        known = {
            "agent": "",
            "workflow": "",
            "step": "",
            "task": None,
            "since": since,
            "until": until,
        }
        about = {"task": str(task.id)} if scope["scope"] == "task" else {}
        sql.run(HOLD, {**known, **scope, **about})


@pytest.mark.parametrize("odd", ODD_TIMES)
@pytest.mark.parametrize("column", ["since", "until", "both"])
def test_odd_times_of_holds_stop_no_sweep_and_no_page(odd, column):
    staff()
    operator = browser(person("ann", is_superuser=True, is_staff=True))
    task, failed = new_task(), in_error(new_task())
    hold_all(
        task,
        LONG_AGO if column == "until" else odd,
        None if column == "since" else odd,
    )
    claimed()
    sweep(LEADER)
    housekeeper.sweep(LEADER, Memory())
    releases = [f"holds/{number}/release/" for number in Hold.objects.values_list("id", flat=True)]
    tasks = [f"tasks/{key}/" for key in (task.id, failed.task_id)]
    pages = ("", "tasks/", "audit/", "agents/", "system/", "workflows/", "incidents/", "holds/new/")
    answers = {
        page: operator.get(f"/ops/{page}").status_code for page in (*pages, *tasks, *releases)
    }
    answers["admin"] = operator.get("/admin/orchestration/hold/").status_code
    assert {code for code in answers.values() if code >= 500} == set(), answers
    for words in (["show", str(task.id)], ["list"], ["holds"]):
        call_command("tasks", *words)


@pytest.mark.parametrize("odd", ["2100-01-01", *ODD_TIMES[:2]])
def test_hold_that_seems_to_end_later_counts_until_now(odd):
    staff()
    task, other = new_task(), new_task()
    hold_all(task, LONG_AGO, odd)
    assert len(claimed()) == 2
    assert set(Step.objects.filter(held_seconds__gt=60).values_list("id", flat=True)) == set()
    Task.objects.update(complete_by=DatabaseNow() - timedelta(hours=1))
    sweep(LEADER)
    assert set(Task.objects.filter(overdue=True)) == {task, other}
    assert Alert.objects.filter(fingerprint="overdue/greet").exists()
