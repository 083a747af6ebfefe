"""The drill fails when a guard is removed: each guard is needed, and the drill detects its loss."""

import re
from contextlib import contextmanager

import pytest

from drill.modes_table import Mode
from drill.process_names import processes_named
from drill.run import drill, prepare
from drill.stack import Stack
from drill.waiting import wait_for
from tests.stack.sabotage.apps import ORDER

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]
FEW = 100
AT_WORK = "SELECT instance FROM orchestration_worker WHERE pid = %s"


@pytest.fixture(scope="module")
def stack():
    running = Stack("red", DJANGO_SETTINGS_MODULE="tests.stack.sabotage.settings").start()
    try:
        prepare(running)
        yield running
    finally:
        running.stop()


@contextmanager
def sabotaged(stack, guard):
    """Remove a guard from the schedulers, and from processes that start in this block."""
    order = stack.folder / ORDER
    order.write_text(guard)
    try:
        start_again(stack, "work-scheduler")
        yield
    finally:
        order.unlink()
        start_again(stack, "work-scheduler")


def start_again(stack, name):
    """Start processes again; wait until they are at work, as a fault does not wait for them."""
    for act in ("stopProcess", "startProcess"):
        for process in processes_named(name):
            stack.manage(act, process)
    for process in processes_named(name):
        pid = stack.pid(process)
        wait_for(lambda pid=pid: stack.sql(AT_WORK, pid), f"{process} is at work")


def mode(recipe, *, first=False, seconds=2.0, **options):
    return Mode(
        id=recipe, family="Red", what="", how="", recipe=recipe, options=options, first=first,
        seconds=seconds, orders=FEW,
    )  # fmt: skip


def test_drills_pass_with_every_guard(stack):
    for failure in (
        mode("partner", first=True, fault="reset_after_effect", often=0.6),
        mode("replies_late", at_least=1),
        mode("many_schedulers", first=True),
    ):
        result = drill(stack, [failure])
        assert result.verdict.good, result.verdict.troubles[:5]


def test_drill_without_the_idempotency_key_finds_doubled_orders(stack):
    with sabotaged(stack, "key"):
        # a lost reply is looked up by the same key: only another attempt has another one
        loses = mode("partner", first=True, fault="reset_after_effect", often=0.6, retries=10)
        result = drill(stack, [loses])
    assert result.verdict.double > 0
    assert not result.verdict.good


def test_drill_without_claim_locks_finds_steps_claimed_twice(stack):
    with sabotaged(stack, "claim"):
        result = drill(stack, [mode("many_schedulers", first=True)])
    assert not result.verdict.good
    # the first violation: a step claimed twice, or more steps in flight than the window
    assert re.search("claimed twice|window, in flight", str(result.verdict.troubles))


def test_drill_without_the_outbox_finds_lost_orders(stack):
    submission_crashes = mode(
        "crash", first=True, seconds=0, process="work-submission",
        point="submission.before_transaction",
    )  # fmt: skip
    with sabotaged(stack, "outbox"):
        result = drill(stack, [submission_crashes, mode("redis_wiped")])
    assert result.verdict.lost > 0
    assert not result.verdict.good


def test_drill_without_the_attempt_fence_finds_recorded_late_replies(stack):
    # the database's constraint refuses them as well
    stack.sql("ALTER TABLE orchestration_attempt DROP CONSTRAINT attempt_once")
    with sabotaged(stack, "fence"):
        result = drill(stack, [mode("replies_late", at_least=1)], settle=0)
    assert not result.verdict.good
    assert "they are refused" in str(result.verdict.troubles)
