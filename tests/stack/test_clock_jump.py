"""The database's clock jumps by an hour while orders wait for their customers."""

import time

import pytest

from drill.recipes.clocks import adjustable_clock
from drill.stack import Stack
from drill.verdict import audit, audited, check
from drill.waiting import wait_for
from tests.support.stacks import prepare

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
HOUR = 3600

DECLINED = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND t.state = 'error' AND s.resolve_by IS NOT NULL
"""
TO_MEND = """
SELECT min(extract(epoch FROM resolve_by - clock_timestamp())),
    max(extract(epoch FROM resolve_by - clock_timestamp()))
FROM orchestration_step WHERE resolve_by IS NOT NULL
"""
UNDONE = "SELECT count(*) FROM orchestration_task WHERE undo_at IS NOT NULL"
LAST = "SELECT coalesce(max(id), 0) FROM orchestration_alert"
RAISED = "SELECT fingerprint FROM orchestration_alert WHERE id > %s"
CLOCK = "SELECT extract(epoch FROM clock_timestamp())"
DONE = "SELECT count(*) FROM orchestration_task WHERE reference = ANY(%s) AND state = 'processed'"


@pytest.fixture
def stack():
    with audited(Stack("clock")) as running:
        prepare(running)
        running.policy(window=4)  # some orders are in flight, and some wait, when the clock jumps
        yield running


def test_clock_jumps_of_an_hour_undo_nothing(stack):
    with adjustable_clock(stack) as set_to:
        declined = stack.place(10, card="pm_card_visa_chargeDeclined")
        wait_for(lambda: stack.count(DECLINED, declined) == 10, "all cards are declined", 60)
        before = stack.count(LAST)
        placed = []
        for offset in (HOUR, 0, -HOUR, 0):
            placed += stack.place(40, flying=20)
            set_to(offset)
            assert float(stack.sql(CLOCK)[0][0]) == pytest.approx(time.time() + offset, abs=5)
            new = stack.place(5)
            placed += new
            wait_for(lambda new=new: stack.count(DONE, new) == 5, "new orders go through", 45)
        stack.quiet(60)
        assert stack.count(DECLINED, declined) == 10  # still wait for their customers
        least, most = stack.sql(TO_MEND)[0]
        assert 1800 - 120 < least <= most <= 1800
        assert stack.count(UNDONE) == 0
        assert [name for (name,) in stack.sql(RAISED, before)] == ["system/clock_jumped"]
        check(stack, placed)
        assert audit(stack, declined) == []
