"""Steps that end later, on a running stack: reports are early, doubled, contradicting; time ends others.

They come by `complete`, and by webhooks. Some steps wait for their time before they begin.
"""

import pytest

from drill.stack import Stack
from drill.verdict import audited
from drill.waiting import wait_for
from tests.stack.waiting.partner import KINDS
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
OF_CARDS = """
SELECT t.reference, t.state FROM orchestration_task t WHERE t.workflow = 'by_card' AND t.state <> ALL(%s)
"""
AWAITING_CARDS = """
SELECT count(*) FROM orchestration_externalid e JOIN orchestration_step s ON s.id = e.step_id
WHERE e.agent = 'cards' AND s.process_state = 'awaiting'
"""
REPORTS = "SELECT external_id, refusal FROM orchestration_taskrequest WHERE agent = 'cards'"
REFUSALS = """
SELECT refusal, count(*) FROM orchestration_taskrequest WHERE workflow = 'confirm' GROUP BY 1
"""


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
    expected = {"": 2 * MANY, "REPORTED": MANY}
    wait_for(lambda: dict(stack.sql(REFUSALS)) == expected, "what came too late is refused", 30)
    assert stack.count("SELECT count(*) FROM orchestration_wait") == 0
    effects = stack.sandbox("/ledger?partner=bench&limit=5000")["entries"]
    assert len([entry for entry in effects if entry["effect"] == "call"]) == MANY


def partner(stack, what, count):
    """Have the partner act in a phase; return the statuses that it was answered."""
    return stack.python("tests.stack.waiting.partner", what, str(count)).strip()


def test_webhooks_end_each_step_once_whenever_they_come(stack):
    each = 8
    count = each * len(KINDS)
    assert partner(stack, "early", count) == "[202]"
    wait_for(
        lambda: [refusal for _, refusal in stack.sql(REPORTS)] == ["UNKNOWN_ID"] * each,
        "the early reports are kept", 60,
    )  # fmt: skip
    partner(stack, "submit", count)
    wait_for(
        lambda: stack.count(AWAITING_CARDS) >= count - 2 * each,
        "the other charges are accepted",
        60,
    )
    assert partner(stack, "on time", count) == "[202]"
    wait_for(lambda: not stack.sql(OF_CARDS, ["processed", "undone"]), "every order has ended", 90)
    assert partner(stack, "late", count) == "[202]"
    wait_for(lambda: "" not in reports_of(stack, "never"), "the late reports are dealt with", 60)

    ends = {kind: set() for kind in KINDS}
    for reference, state in stack.sql(OF_CARDS, []):
        ends[kind_of(reference)].add(state)
    assert ends.pop("at once") <= {"processed", "undone"}
    paid = {kind: {"processed"} for kind in ("after", "before", "twice", "contradicted")}
    assert ends == {**paid, "declined": {"undone"}, "never": {"undone"}}
    once, twice = [""] * each, [""] * each + ["REPORTED"] * each
    assert {kind: reports_of(stack, kind) for kind in KINDS} == {
        **dict.fromkeys(("after", "before", "twice"), once),
        **dict.fromkeys(("contradicted", "at once", "declined"), twice),
        "never": ["REPORTED"] * each,
    }


def kind_of(charge):
    return KINDS[int(charge.removeprefix("card-")) % len(KINDS)]


def reports_of(stack, kind):
    return sorted(refusal for charge, refusal in stack.sql(REPORTS) if kind_of(charge) == kind)
