"""Steps that end later, on a running stack: reports are early, doubled, contradicting; time ends others.

Some wait for their time before they begin.
"""

import pytest

from drill.stack import Stack
from drill.verdict import audited
from drill.waiting import wait_for
from tests.support.stacks import prepare

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
MANY = 60
ENDED = "SELECT count(*) FROM orchestration_task WHERE workflow = 'confirm' AND state = %s"
AWAITING = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.workflow = 'confirm' AND s.name = %s AND s.process_state = 'awaiting'
"""
STATES = """
SELECT DISTINCT s.name, s.process_state, s.result->>'id' = 'ch-' || split_part(t.reference, '-', 2)
FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id WHERE t.workflow = 'confirm'
"""
EARLY = """
SELECT count(*) FROM orchestration_step n JOIN orchestration_step g ON g.task_id = n.task_id
WHERE n.name = 'note' AND g.name = 'goods' AND n.dispatched_at < g.ended_at + interval '1 second'
"""
REFUSALS = "SELECT refusal, count(*) FROM orchestration_taskrequest GROUP BY 1"


@pytest.fixture(scope="module")
def stack():
    settings = "tests.stack.waiting.settings"
    with audited(Stack("waits", DJANGO_SETTINGS_MODULE=settings)) as running:
        prepare(running)
        yield running


def report(stack, what):
    stack.python("tests.stack.waiting.report", what, str(MANY))


def test_reports_end_each_step_once_whenever_they_come(stack):
    report(stack, "submit")
    report(stack, "goods")  # long before they are awaited
    wait_for(lambda: stack.count(AWAITING, "pay") == MANY, "every charge is accepted", 60)
    for _ in range(2):
        report(stack, "pay")
    report(stack, "decline")  # in contradiction, and too late
    wait_for(lambda: stack.count(ENDED, "processed") == MANY, "every order is processed", 60)
    assert sorted(stack.sql(STATES)) == [
        ("goods", "processed", None),
        ("later", "skipped", None),  # its time came after the payment
        ("note", "processed", None),
        ("pay", "processed", True),
        ("remind", "processed", None),
        ("review", "skipped", None),  # no decision came, and the default is to go on
    ]
    assert stack.count(EARLY) == 0
    assert dict(stack.sql(REFUSALS)) == {"": 2 * MANY, "REPORTED": MANY}
    assert stack.count("SELECT count(*) FROM orchestration_wait") == 0
    effects = stack.sandbox("/ledger?partner=bench&limit=5000")["entries"]
    assert len([entry for entry in effects if entry["effect"] == "call"]) == MANY
