"""Workflows without orders, on a running stack."""

import sys

import pytest

from drill.stack import Stack
from drill.verdict import audited
from drill.waiting import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]
DONE = "SELECT count(*) FROM orchestration_task WHERE workflow = 'greet' AND state = 'processed'"
MANY = 50
CLOSED, LIMIT = 400, 100


@pytest.fixture(scope="module")
def stack():
    with audited(Stack("greeting", DJANGO_SETTINGS_MODULE="tests.settings")) as running:
        yield running


def calls(stack):
    effects = stack.sandbox("/ledger?partner=bench&limit=5000")["entries"]
    return [effect["key"] for effect in effects if effect["effect"] == "call"]


def test_greetings_are_processed(stack):
    stack.python("tests.stack.greet", str(MANY))
    wait_for(lambda: stack.count(DONE) == MANY, "every greeting is processed", 30)
    assert len(calls(stack)) == 2 * MANY


def test_workflow_with_computed_steps_is_processed(stack):
    stack.python("tests.stack.greet", str(MANY), "invited-", "invite")
    done = DONE.replace("'greet'", "'invite'")
    wait_for(lambda: stack.count(done) == MANY, "every invitation is processed", 30)
    reports = stack.sql(
        "SELECT DISTINCT result->>'text' FROM orchestration_step WHERE name = 'report'"
    )
    assert ("“Dear Guest 7” was sent",) in reports
    assert len(reports) == MANY


def refuse(code, message, **options):
    return {"partner": "bench", "action": "call", "fault": "reject", "code": code,
            "message": message, **options}  # fmt: skip


def incidents(stack):
    """Return, by error code: failures, tasks affected, tasks in error, state."""
    rows = stack.sql("SELECT code, failures, tasks, open_tasks, state FROM orchestration_incident")
    return {code: tuple(rest) for code, *rest in rows}


def test_500_failures_of_two_causes_are_two_incidents(stack):
    """Each message has another id; both incidents are resubmitted after one cause is removed."""
    before = len(calls(stack))
    stack.policy(window=200, on_rejection="error")
    stack.sql("UPDATE orchestration_supervisorpolicy SET approve_items = 100000")
    faults = [
        *(refuse("closed", f"account pi_{n}x is closed", times=40) for n in range(10)),
        *(refuse("limit", f"limit of {n}00.00 exceeded by card {n}", times=20) for n in range(5)),
    ]
    stack.sandbox("/faults", {"faults": faults}, "PUT")
    stack.python("tests.stack.greet", str(CLOSED + LIMIT), "refused-")
    both = {"closed": (400, 400, 400, "new"), "limit": (100, 100, 100, "new")}
    wait_for(lambda: incidents(stack) == both, "all of them failed, by two causes", 60)

    limited = stack.sql("SELECT task_id FROM orchestration_step WHERE error_code = 'limit'")
    still = [
        refuse("limit", f"limit of 1.00 exceeded by card {t}", key=f"{t}:*") for (t,) in limited
    ]
    stack.sandbox("/faults", {"faults": still}, "PUT")
    for (known,) in stack.sql("SELECT id FROM orchestration_incident ORDER BY id"):
        start = ["operations", "start", "resubmit", "--incident", str(known), "--rate", "1000"]
        stack.run([sys.executable, "manage.py", *start, "--reason", "it is mended"])
    stack.sql("UPDATE orchestration_operation SET starts_at = clock_timestamp()")  # at once
    ended = "SELECT count(*) FROM orchestration_operation WHERE state = 'ended'"
    wait_for(lambda: stack.count(ended) == 2, "both operations have their true end", 60)

    counts = stack.sql(
        "SELECT fixed, again, other, skipped FROM orchestration_operation ORDER BY items"
    )
    assert counts == [(0, 100, 0, 0), (400, 0, 0, 0)]
    after = {"closed": (400, 400, 0, "resolved"), "limit": (200, 100, 100, "returned")}
    wait_for(lambda: incidents(stack) == after, "one is resolved, the other returned", 10)
    wait_for(lambda: stack.count(DONE) == MANY + CLOSED, "what was mended goes on to its end", 30)
    keys = calls(stack)
    assert len(keys) - before == 2 * CLOSED
    assert len(set(keys)) == len(keys)
