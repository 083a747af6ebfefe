"""Orders with children, on a running stack: each step ends as its children have, also amid faults."""

from collections import Counter

import pytest

from drill.stack import Stack
from drill.verdict import audited
from drill.waiting import wait_for
from tests.support.stacks import prepare

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
COUNTS = [0, 1, 2, 3, 5, 8] * 5 + [100]  # parcels of each order
OUTAGE = (
    {"partner": "bench", "action": "*", "fault": "reset", "probability": 0.1},
    {"partner": "bench", "action": "*", "fault": "reset_after_effect", "probability": 0.1},
)
KILLED = ("work-scheduler", "work-carrier")  # both processes of each, one by one
ENDED = "SELECT count(*) FROM orchestration_task WHERE workflow = %s AND state = %s"
ITEMS = """
SELECT t.reference, s.result FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE s.name = 'parcels' AND s.direction = 'do'
"""
KEYS = """
SELECT s.task_id || ':' || s.name || ':do:1' FROM orchestration_step s
JOIN orchestration_task t ON t.id = s.task_id
WHERE t.workflow IN ('split', 'parcel') AND s.agent = 'carrier' AND s.direction = 'do'
"""
UNDONE = KEYS + " AND t.state = 'undone'"


@pytest.fixture(scope="module")
def stack():
    settings = "tests.stack.splitting.settings"
    with audited(Stack("children", DJANGO_SETTINGS_MODULE=settings)) as running:
        prepare(running)
        yield running


def effects(stack, kind):
    """Return how often each key had its effect at the carrier."""
    entries = stack.sandbox("/ledger?partner=bench&limit=5000")["entries"]
    return Counter(entry["key"] for entry in entries if entry["effect"] == kind)


def test_orders_end_as_their_children_do(stack):
    stack.sandbox("/faults", {"faults": list(OUTAGE)}, "PUT")
    stack.python("tests.stack.splitting.place", *map(str, COUNTS))
    wait_for(lambda: stack.count(ENDED, "parcel", "processed") >= 20, "children end", 60)
    for number in (1, 2):
        for name in KILLED:
            stack.kill(f"{name}-{number}")
    stack.sandbox("/faults", {"faults": []}, "PUT")
    stack.quiet(120)
    assert stack.count(ENDED, "split", "processed") == len(COUNTS)
    assert stack.count(ENDED, "parcel", "processed") == sum(COUNTS)
    for reference, outcome in stack.sql(ITEMS):
        count = COUNTS[int(reference.removeprefix("order-"))]
        assert [parcel["number"] for parcel in outcome["items"]] == list(range(count))
    assert effects(stack, "call") == dict.fromkeys((key for (key,) in stack.sql(KEYS)), 1)

    chosen = [f"order-{number}" for number in range(len(COUNTS)) if number % 2 == 0]
    assert not stack.python("drill.operator", "undo", *chosen)
    stack.quiet(120)
    parcels = sum(count for number, count in enumerate(COUNTS) if number % 2 == 0)
    assert stack.count(ENDED, "split", "undone") == len(chosen)
    assert stack.count(ENDED, "parcel", "undone") == parcels
    keys = {key.replace(":do:", ":undo:") for (key,) in stack.sql(UNDONE)}
    assert effects(stack, "void") == dict.fromkeys(keys, 1)
