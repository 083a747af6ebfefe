"""Beside an old transaction looks begin at a mark, and nothing stays before it for long."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.db.utils import ProgrammingError

from bench.turn_plans import Explaining
from orchestration import conf, scheduler, supervisor
from orchestration.console.statistics import rollups
from orchestration.database import prepared
from orchestration.decisions.fairness import STRIDE
from orchestration.models import Hold, Policy, Step, low_water
from orchestration.models.fields import DatabaseNow
from orchestration.models.low_water import AGENTS, LONG_AGO, PROCESSING, Mark, _Known
from orchestration.monitoring import monitors
from orchestration.supervision import doorbells
from orchestration.supervision.duties import due, parameters, question
from orchestration.transitions import failures
from orchestration.transitions.holds import unpark
from orchestration.waiting.undeclared import UNDECLARED
from tests.support.database import another
from tests.support.engine import claimed, new_task
from tests.support.plans import FORGET, analyse

pytestmark = pytest.mark.django_db(transaction=True)

INDEXES = {"step_turn", "step_waiting", "step_in_flight", "step_expiry"}
SECOND = timedelta(seconds=1)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
# Pages: a look may read all hundred steps that wait (the planner may choose so), but not what is dead.
FEW, MANY = 110, 150
LAG = 0.2  # seconds
# as if each step had its turn, and joined the line again
LATER = """
UPDATE orchestration_step SET turn = turn + %(seconds)s * 1000000000::bigint,
    pending_since = pending_since + %(seconds)s * interval '1 second'
WHERE process_state = 'pending'
"""


@pytest.fixture(params=["none", "outdated"])
def statistics(request, transactional_db):
    """What the planner knows: nothing, or steps of one agent whose time was long over."""
    with connection.cursor() as cursor:
        cursor.execute(FORGET)
        if request.param == "outdated":
            window(100)
            for _ in range(120):
                new_task()
            claimed()
            late = DatabaseNow() - 3_600 * SECOND
            Step.objects.filter(process_state="processing").update(complete_by=late)
            analyse("orchestration_step", "orchestration_policy")
            cursor.execute("TRUNCATE orchestration_task CASCADE")
        yield
        cursor.execute(FORGET)


@pytest.fixture
def old_transaction():
    with another() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT pg_current_xact_id()")
        yield
        cursor.execute("ROLLBACK")


@pytest.fixture
def worked(old_transaction):
    """Much was done since the transaction began; a hundred steps wait, and as many are in flight."""
    window(100)
    for _ in range(200):
        new_task()
    assert len(claimed()) == 100
    Step.objects.update(turn=F("turn") - 3_600 * 10**9)
    for _ in range(30):
        Step.objects.filter(process_state="pending").update(
            turn=F("turn") + 1_000 * STRIDE, pending_since=DatabaseNow()
        )
        attempts = Step.objects.filter(process_state="processing")
        attempts.update(dispatched_at=DatabaseNow(), complete_by=DatabaseNow() - SECOND)
        attempts.update(complete_by=DatabaseNow() + 60 * SECOND)


@pytest.fixture
def marks(worked, monkeypatch):
    """Marks are in use, but not known yet; they are used as soon as they are."""
    monkeypatch.setattr(low_water, "COSTLY", 400)
    forget_marks(monkeypatch)


def forget_marks(monkeypatch):
    for kind in (AGENTS, PROCESSING):
        monkeypatch.setattr(kind, "in_use", True)
        monkeypatch.setattr(kind, "_known", {})
        monkeypatch.setattr(kind, "_rest_until", 0.0)
    monkeypatch.setattr(low_water, "LAG_S", 0.0)
    monkeypatch.setattr(low_water, "LOOK_S", 0.0)


def window(size):
    Policy.objects.filter(agent="greeter").update(window=size)


def look_for(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        AGENTS.of(["greeter"])


def read_by_turn() -> int:
    """Have a scheduler claim some steps; return the number of pages of one look, at most."""
    explaining = Explaining()
    with connection.execute_wrapper(explaining):
        assert not scheduler.run_once("scheduler-1", [], {"greeter"}).more
    looks = [read for read in explaining.reads if read.index in INDEXES]
    assert {read.index for read in looks} >= INDEXES - {"step_expiry"}
    return max(read.pages for read in looks)


def read_by(statement, parameters, off=("seqscan", "bitmapscan")) -> int:
    """Return the number of pages that a statement reads, with some ways of the planner `off`."""
    with transaction.atomic(), connection.cursor() as cursor:
        for way in off:
            cursor.execute(f"SET LOCAL enable_{way} = off")
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", parameters)
        ((plans,),) = cursor.fetchall()
        transaction.set_rollback(True)
    return plans[0]["Plan"]["Shared Hit Blocks"] + plans[0]["Plan"]["Shared Read Blocks"]


def read_by_sweep() -> dict[str, int]:
    """Return the number of pages that the statements of leaders read which look at all agents."""
    watched = {"limit": 1.0, "now": None} | low_water.all_agents()
    soon = datetime.now(UTC) + 600 * SECOND
    failed = failures._failed(soon, None).order_by("complete_by").values("task")[:200]
    return {
        "anything": read_by(
            question(supervisor.DUTIES), parameters(supervisor.DUTIES), off=prepared.WAYS
        ),
        "unserved": read_by(doorbells.LOOK, low_water.all_agents(), off=prepared.WAYS),
        "failed": read_by(*failed.query.sql_with_params()),
        "waiting": read_by(monitors.WAITING, watched),
        "gates": read_by(
            rollups.OBSERVE_GATES, watched | {"spans": [60], "cap": 9}, off=prepared.WAYS
        ),
        "undeclared": read_by(UNDECLARED, {"agents": ["", "greeter"]}),
    }


def test_turn_reads_few_pages_once_it_has_marks(statistics, marks, monkeypatch):
    monkeypatch.setattr(low_water, "SHARE", 1e-5)  # no look from the head meanwhile
    window(110)
    assert read_by_turn() > MANY
    AGENTS.of(["greeter"])
    window(120)
    assert read_by_turn() < FEW


def test_entries_that_are_known_to_be_dead_are_costly_too(monkeypatch):
    """No transaction is open: what looks pass is marked as dead, and stays where it is until a vacuum."""
    window(100)
    for _ in range(200):
        new_task()
    with connection.cursor() as cursor:
        cursor.execute(LATER, {"seconds": -7_200})
        for _ in range(100):  # each time behind all others, however long it took to make them
            cursor.execute(LATER, {"seconds": 60})
    forget_marks(monkeypatch)
    monkeypatch.setattr(low_water, "SHARE", 1e-5)
    for _ in range(3):  # the first marks what it passes
        ((*_, passed),) = prepared.run(AGENTS.lowest, AGENTS.parameters({"greeter": AGENTS.head}))
    assert passed > low_water.COSTLY
    look_for(LAG)
    assert AGENTS.of(["greeter"])["greeter"].turn > 0
    window(120)
    assert read_by_turn() < FEW


def test_sweep_reads_few_pages_once_it_has_marks(statistics, marks, monkeypatch):
    monkeypatch.setattr(low_water, "SHARE", 1e-5)
    monkeypatch.setattr(AGENTS, "in_use", False)
    monkeypatch.setattr(PROCESSING, "in_use", False)
    without = read_by_sweep()
    monkeypatch.setattr(AGENTS, "in_use", True)
    monkeypatch.setattr(PROCESSING, "in_use", True)
    for _ in range(3):
        pages_read = read_by_sweep()
    assert {name for name, pages in pages_read.items() if pages > MANY} == set()
    assert {name for name, pages in without.items() if pages < MANY} == {"undeclared"}


def test_step_that_is_before_the_mark_is_found_before_long(marks):
    """As one is whose turn was given long before it was committed."""
    for _ in range(3):
        AGENTS.of(["greeter"])
    late = Step.objects.filter(process_state="pending").latest("turn")
    Step.objects.filter(id=late.id).update(turn=1, pending_since=LONG_AGO)
    window(101)
    assert late.id not in {request.step for request in claimed()}
    give_up_at = time.monotonic() + 20
    for size in range(102, 200):
        window(size)
        if late.id in {request.step for request in claimed()}:
            break
        assert time.monotonic() < give_up_at


def test_step_that_is_committed_after_a_look_is_never_passed(marks, monkeypatch):
    monkeypatch.setattr(low_water, "SHARE", 1e-9)
    monkeypatch.setattr(low_water, "LONGEST_S", 1e9)
    monkeypatch.setattr(low_water, "LAG_S", LAG)
    monkeypatch.setattr(low_water, "LOOK_S", LAG / 2)
    look_for(2 * LAG)
    first = Step.objects.filter(process_state="pending").earliest("turn")
    late = Step.objects.filter(process_state="pending").latest("turn")
    with another() as cursor:
        cursor.execute("BEGIN")
        move = "UPDATE orchestration_step SET turn = %s WHERE id = %s"
        cursor.execute(move, [first.turn + 1, late.id])
        window(110)
        assert len(claimed()) == 10
        look_for(LAG / 2)  # and do not see the late one
        cursor.execute("COMMIT")
    look_for(4 * LAG)
    assert AGENTS.of(["greeter"])["greeter"].turn == first.turn + 1
    window(111)
    assert [request.step for request in claimed()] == [late.id]


def test_steps_of_an_ended_hold_are_claimed_at_once(marks, monkeypatch):
    monkeypatch.setattr(low_water, "SHARE", 1e-9)
    monkeypatch.setattr(low_water, "LONGEST_S", 1e9)
    parked = Step.objects.filter(process_state="pending").latest("turn")
    of_task = Hold.objects.create(
        scope="task", cause="hand", task=parked.task, actor="ann", reason="a test"
    )
    Step.objects.filter(id=parked.id).update(held_by=of_task)
    window(200)
    assert len(claimed()) == 99
    for _ in range(3):
        AGENTS.of(["greeter"])
    Hold.objects.update(until=DatabaseNow())
    unpark()
    assert due(supervisor.DUTIES)
    assert [request.step for request in claimed()] == [parked.id]


def test_marks_from_before_the_clock_was_put_back_are_not_used(marks):
    for _ in range(3):
        AGENTS.of(["greeter"])
    known = AGENTS._known["greeter"]
    assert known.mark
    known.read_at += timedelta(hours=1)
    assert AGENTS.of(["greeter"]) == {}
    assert known.from_head_at == 0.0


def test_look_that_fails_is_not_repeated_at_once(marks, monkeypatch):
    monkeypatch.setattr(low_water, "LOOK_S", 60.0)
    monkeypatch.setattr(AGENTS, "lowest", "SELECT FROM orchestration_nothing")
    with pytest.raises(ProgrammingError), transaction.atomic():
        AGENTS.of(["greeter"])
    assert AGENTS.of(["greeter"]) == {}


def test_nothing_is_asked_where_looks_are_cheap(django_assert_num_queries, monkeypatch):
    monkeypatch.setattr(AGENTS, "in_use", False)
    monkeypatch.setattr(AGENTS, "_known", {})
    monkeypatch.setattr(AGENTS, "_rest_until", 0.0)
    monkeypatch.setattr(conf, "SLOW_LOOK_S", 0.0)
    new_task()
    with AGENTS.watching():
        pass
    with django_assert_num_queries(1):
        assert AGENTS.of(["greeter"]) == {}  # few entries were passed
    with AGENTS.watching():
        pass  # what takes long has another cause
    with django_assert_num_queries(0):
        assert AGENTS.of(["greeter"]) == {}


def test_mark_follows_what_was_found_some_time_ago():
    known = _Known(costly=True)
    for second in range(4):
        known.add(Mark(turn=second), NOW, float(second))
    assert known.used == Mark(turn=2)
    known.add(Mark(turn=1), NOW, 4.0)  # one that was committed late
    assert known.used == Mark(turn=1)
    known.add(Mark(turn=5), NOW, 4.0 + low_water.LAG_S / 2)
    assert known.used == Mark(turn=3)
    known.costly = False
    assert known.used is None
