"""A workflow that branches, on a running stack: what is skipped stays undone, also amid faults."""

from collections import Counter

import pytest

from drill.stack import Stack
from drill.verdict import audited
from drill.waiting import wait_for
from tests.support.stacks import prepare

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
EACH = 40  # orders to each place
PLACES = ("screen", "town", "island")
ISLANDS = {
    "partner": "bench", "action": "call", "key": "*:carry:do:*", "order": "island",
    "fault": "reject", "code": "not_served",
}  # fmt: skip
OUTAGE = (
    {"partner": "bench", "action": "*", "fault": "reset", "probability": 0.3},
    {"partner": "bench", "action": "*", "fault": "reset_after_effect", "probability": 0.2},
)
KILLED = ("work-carrier", "work-scheduler", "work-rider")  # both processes of each, one by one
ENDED = "SELECT count(*) FROM orchestration_task WHERE workflow = 'deliver' AND state = %s"
DIGITAL = f"{ENDED} AND starts_with(reference, 'screen')"
AWAY = """
SELECT count(*) FROM orchestration_attempt a JOIN orchestration_step s ON s.id = a.step_id
WHERE s.agent IN ('carrier', 'rider') AND a.outcome NOT IN ('done', 'rejected')
"""
STATES = """
SELECT split_part(t.reference, '-', 1), s.name, s.process_state, count(*)
FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.workflow = 'deliver' AND s.direction = 'do' GROUP BY 1, 2, 3
"""
# what is done for an order to a place, but for what is computed
DONE = {"screen": {"letter"}, "town": {"carry", "letter"}, "island": {"hand", "letter"}}


@pytest.fixture(scope="module")
def stack():
    settings = "tests.stack.branching.settings"
    with audited(Stack("branches", DJANGO_SETTINGS_MODULE=settings)) as running:
        prepare(running)
        yield running


def effects(stack):
    """Return how often each key had its effect at the carriers."""
    entries = stack.sandbox("/ledger?partner=bench&limit=5000")["entries"]
    return Counter(entry["key"] for entry in entries if entry["effect"] in {"call", "void"})


def expected(stack, undone=()):
    """Return the keys that have had their effect once: of what is done, and of what is undone."""
    keys = {}
    for task, reference in stack.sql(
        "SELECT id::text, reference FROM orchestration_task WHERE workflow = 'deliver'"
    ):
        for name in DONE[reference.partition("-")[0]]:
            keys[f"{task}:{name}:do:1"] = 1
            if reference in undone:
                keys[f"{task}:{name}:undo:1"] = 1
    return keys


def test_what_is_skipped_stays_undone_amid_faults(stack):
    stack.python("drill.operator", "hold", "carrier")
    stack.python("tests.stack.branching.place", *PLACES * EACH)
    wait_for(
        lambda: stack.count(DIGITAL, "processed") == EACH,
        "orders without a parcel end while the carrier is held", 60,
    )  # fmt: skip
    assert stack.count(ENDED, "processed") == EACH

    stack.sandbox("/faults", {"faults": [ISLANDS, *OUTAGE]}, "PUT")
    stack.python("drill.operator", "release", "carrier")
    wait_for(lambda: stack.count(AWAY) >= 5, "calls fail", 60)
    for number in (1, 2):
        for name in KILLED:
            stack.kill(f"{name}-{number}")
    stack.sandbox("/faults", {"faults": [ISLANDS]}, "PUT")
    stack.quiet(120)
    assert stack.count(ENDED, "processed") == len(PLACES) * EACH
    assert {tuple(row) for row in stack.sql(STATES)} == {
        (place, name, "processed" if name in {*DONE[place], "sort"} else "skipped", EACH)
        for place in PLACES
        for name in ("sort", "carry", "hand", "letter")
    }
    assert effects(stack) == expected(stack)

    chosen = [f"{place}-{number}" for number, place in enumerate(PLACES * EACH) if number % 4 == 0]
    assert not stack.python("drill.operator", "undo", *chosen)
    stack.quiet(60)
    assert stack.count(ENDED, "undone") == len(chosen)
    assert effects(stack) == expected(stack, undone=chosen)
