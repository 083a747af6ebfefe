"""A workflow that has nothing to do with orders, on the same running engine."""

import pytest

from drill.stack import Stack
from drill.waiting import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.timeout(120)]
DONE = "SELECT count(*) FROM orchestration_task WHERE workflow = 'greet' AND state = 'processed'"
MANY = 50


def test_greetings_are_processed():
    stack = Stack("greeting", DJANGO_SETTINGS_MODULE="tests.settings").start()
    try:
        stack.python("tests.stack.greet", str(MANY))
        wait_for(lambda: stack.count(DONE) == MANY, "every greeting is processed", 30)
        effects = stack.sandbox("/ledger?partner=bench&limit=1000")["entries"]
        assert len([effect for effect in effects if effect["effect"] == "call"]) == 2 * MANY
    finally:
        stack.stop()
