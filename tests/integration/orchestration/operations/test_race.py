"""Two supervisors at one operation, and one that dies in the middle: nothing is acted on twice, or lost."""

from collections import Counter

import pytest

from orchestration.models import Event, Operation, Step
from orchestration.models.fields import DatabaseNow
from tests.support.operations import advance, begin, confirmed, failed, states
from tests.support.together import processes

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 450


@pytest.fixture
def operation():
    """Many failed steps to be resubmitted, and a rate that lets them all go at once."""
    made = confirmed(failed(MANY))
    begin(made)
    Operation.objects.update(
        state="running", started_at=DatabaseNow(), tokens_at=DatabaseNow(), tokens=MANY
    )
    return made


def senders(count, how, crash_at=""):
    """Let supervisors take the operation on, all at once; return how each ended."""
    ended = processes(
        "tests.integration.orchestration.operations.sender", [[how]] * count, CRASH_AT=crash_at
    )
    return [code for code, _ in ended]


def times_resubmitted():
    events = Event.objects.filter(kind="resubmitted").values_list("step", flat=True)
    return Counter(Counter(events).values())


def test_two_supervisors_send_each_item_once(operation):
    assert senders(2, "with-locks") == [0, 0]
    assert states(operation) == {"sent": MANY}
    assert times_resubmitted() == {1: MANY}
    assert set(Step.objects.filter(name="hello").values_list("generation", flat=True)) == {2}


def test_items_are_sent_twice_without_the_locks(operation):
    senders(2, "without-locks")
    twice = sum(count for times, count in times_resubmitted().items() if times > 1)
    assert twice or states(operation).get("skipped")


@pytest.mark.parametrize("point", ["operation.marked", "operation.before_commit"])
def test_crash_within_a_batch_loses_nothing(operation, point):
    assert senders(1, "with-locks", f"{point}:2") == [-9]
    assert states(operation) == {"sent": 200, "waiting": MANY - 200}
    advance(operation)
    assert states(operation) == {"sent": MANY}
    assert times_resubmitted() == {1: MANY}


def test_crash_loses_a_batch_without_the_transaction(operation):
    assert senders(1, "without-transaction", "operation.marked:2") == [-9]
    advance(operation)
    assert times_resubmitted() == {1: MANY - 200}
    assert Step.objects.filter(operation_items__state="sent", process_state="error").exists()
