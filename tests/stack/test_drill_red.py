"""With a guard taken away, the drill turns red; what nobody can break, nothing protects."""

import re
from contextlib import contextmanager

import pytest

from drill.run import drill, prepare
from drill.stack import Stack, serving
from drill.table import Mode
from tests.stack.sabotage.apps import ORDER

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]
FEW = 100


@pytest.fixture(scope="module")
def stack():
    # the saboteur acts as a process begins: each has to be a Python of its own
    settings = "tests.stack.sabotage.settings"
    running = Stack("red", DJANGO_SETTINGS_MODULE=settings, PRELOAD="0").start()
    try:
        prepare(running)
        yield running
    finally:
        running.stop()


@contextmanager
def sabotaged(stack, guard):
    """Take a guard away from the scheduler, and from whatever else is started meanwhile."""
    order = stack.folder / ORDER
    order.write_text(guard)
    try:
        start_again(stack, "work-scheduler")
        yield
    finally:
        order.unlink()
        start_again(stack, "work-scheduler")


def start_again(stack, name):
    for act in ("stopProcess", "startProcess"):
        for one in serving(name):
            stack.manage(act, one)


def mode(recipe, *, first=False, seconds=2.0, **given):
    return Mode(
        id=recipe, family="Red", what="", how="", recipe=recipe, given=given, first=first,
        seconds=seconds, orders=FEW,
    )  # fmt: skip


def test_with_every_guard_in_place_the_same_drills_are_green(stack):
    for one in (
        mode("partner", first=True, fault="reset_after_effect", often=0.6),
        mode("replies_late", at_least=4),
        mode("many_schedulers", first=True),
    ):
        result = drill(stack, [one])
        assert result.verdict.good, result.verdict.troubles[:5]


def test_without_the_idempotency_key_orders_are_done_twice(stack):
    with sabotaged(stack, "key"):
        result = drill(stack, [mode("partner", first=True, fault="reset_after_effect", often=0.6)])
    assert result.verdict.double > 0
    assert not result.verdict.good


def test_without_the_locks_of_a_claim_steps_are_claimed_twice(stack):
    with sabotaged(stack, "claim"):
        result = drill(stack, [mode("many_schedulers", first=True)])
    assert not result.verdict.good
    # whichever is met with first: a step taken twice, or more steps than there are places
    assert re.search("claimed twice|a herd", str(result.verdict.troubles))


def test_without_the_outbox_accepted_orders_are_lost(stack):
    nobody_takes = mode(
        "crash", first=True, seconds=0, process="work-submission",
        point="submission.before_transaction",
    )  # fmt: skip
    with sabotaged(stack, "outbox"):
        result = drill(stack, [nobody_takes, mode("redis_wiped")])
    assert result.verdict.lost > 0
    assert not result.verdict.good


def test_without_the_attempt_fence_late_replies_are_recorded(stack):
    # the database's own fence stands in the way as well
    stack.sql("ALTER TABLE orchestration_attempt DROP CONSTRAINT attempt_once")
    with sabotaged(stack, "fence"):
        result = drill(stack, [mode("replies_late", at_least=4)])
    assert not result.verdict.good
    assert "they are refused" in str(result.verdict.troubles)
