"""Deploys with real processes: the old release processes what it knows, the new one the rest."""

import json
import sys
import time
from dataclasses import replace

import pytest

from drill.modes_table import load
from drill.process_names import COPIES
from drill.run import drill, prepare
from drill.stack import Stack
from drill.verdict import audited
from drill.waiting import wait_for
from orchestration import conf

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
PATIENCE = 5  # failures in succession before a turn ends
MODES = {mode.id: mode for mode in load()}
SUBMISSION = (
    "INSERT INTO orchestration_submission (workflow, reference, data, reply_to, priority, reason)"
    " VALUES (%s, %s, '{}', '', 0, '')"
)
ALERTS = "SELECT count(*) FROM orchestration_alert WHERE closed_at IS NULL"


@pytest.fixture(scope="module")
def stack():
    with audited(Stack("deploys")) as running:
        prepare(running)
        yield running


@pytest.mark.parametrize("name", ["deploy-field-web-first", "deploy-column-migration-first"])
def test_every_order_accepted_during_a_deploy_is_processed(stack, name):
    result = drill(stack, [replace(MODES[name], orders=100, seconds=4)])
    assert result.verdict.good, result.verdict
    wait_for(lambda: stack.count(ALERTS) == 0, "its alerts close by themselves", 30)


def test_dead_letters_are_retried_and_closed_from_a_shell(stack):
    stack.sql(SUBMISSION, "send_gift_card", "7")
    unknown = (
        "SELECT count(*) FROM orchestration_submission WHERE problem = 'unknown' AND tries > 1"
    )
    wait_for(lambda: stack.count(unknown) == 1, "it is tried again and again", 20)
    wait_for(lambda: stack.count(ALERTS) == 1, "people are alerted", 10)
    letters = [sys.executable, "manage.py", "deadletters"]
    (letter,) = json.loads(stack.run([*letters, "list"]).stdout)
    assert (letter["state"], letter["subject"]) == ("unknown", "7")
    which = [str(letter["id"]), "--kind", letter["kind"]]
    assert json.loads(stack.run([*letters, "retry", *which]).stdout) == {"retried": 1}
    wait_for(lambda: stack.count(unknown) == 1, "it failed again", 20)
    stack.run([*letters, "close", *which, "--reason", "it was a test"])
    assert stack.count(ALERTS) == 0
    assert json.loads(stack.run([*letters, "list"]).stdout) == []


def test_broken_release_is_tried_with_few_orders(stack):
    """A release that cannot record a submission fails a few, independent of the number that wait."""
    new = {"DJANGO_SETTINGS_MODULE": "drill.deploys.settings", "DRILL_DEPLOY": "broken"}
    tried = "SELECT sum(tries) FROM orchestration_submission WHERE reference = ANY(%s)"
    with stack.replaced("work-submission", **new):
        began = time.monotonic()
        orders = stack.place(50)
        wait_for(lambda: stack.count(tried, orders) >= PATIENCE, "some are tried", 20)
        tries = stack.count(tried, orders)
        # a busy machine takes longer
        pauses = 1 + (time.monotonic() - began) // conf.FAILING_WORKFLOW_PAUSE_S
        assert tries <= COPIES * 2 * PATIENCE * pauses  # by each process: fresh ones, and retries
    stack.quiet()
    assert stack.count(
        "SELECT count(*) FROM orchestration_task WHERE state = 'processed' AND reference = ANY(%s)",
        orders,
    ) == len(orders)
