"""The roll-ups: equal to a recount, each row once, through changes and deaths of leaders."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import psycopg2
import pytest
from django.db import connection
from django.db.models import Sum

from orchestration.cluster.leader_election import Leadership
from orchestration.console.statistics import rollups
from orchestration.console.statistics.histogram import merged, percentile
from orchestration.models import (
    Attempt,
    GateRollUp,
    Policy,
    RollUpMark,
    StepRollUp,
    Task,
    TaskRollUp,
)
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.holds import hold
from orchestration.transitions.replies import record
from tests.support.engine import claimed, in_error, new_task, reply_to, run_to_end
from tests.support.operators import LEADER, fail
from tests.support.together import database_url

NEXT = Leadership(holder="supervisor-2", epoch=4)
START = datetime(2020, 1, 1, tzinfo=UTC)
END = datetime(2100, 1, 1, tzinfo=UTC)
TASKS = ("created", "processed", "errors", "undone")
STEPS = ("done", "failed", "rejected")


def summed(model, names, span=60):
    sums = model.objects.filter(span=span).aggregate(**{name: Sum(name) for name in names})
    return tuple(sums[name] or 0 for name in names)


def some_history():
    """Two tasks done, one rejected, one that failed once: 5 attempts good, 1 bad, 1 failed."""
    run_to_end(new_task())
    run_to_end(new_task())
    in_error(new_task())
    new_task()
    fail(claimed())


def later(seconds=6):
    """Let the next count be due."""
    past = timedelta(seconds=seconds)
    mark = RollUpMark.objects.get()
    if mark.noted_until:
        RollUpMark.objects.update(noted_until=mark.noted_until - past)


@pytest.mark.django_db
class TestCounting:
    def test_each_span_equals_a_recount(self):
        some_history()
        rollups.count(START, END)
        for span in rollups.SPANS:
            assert summed(TaskRollUp, TASKS, span) == (4, 2, 1, 0)
            assert summed(StepRollUp, STEPS, span) == (4, 1, 1)
            steps = StepRollUp.objects.filter(span=span).values_list("step", "took")
            assert sum(sum(took) for _, took in steps) == 4
        assert {row.start.second for row in TaskRollUp.objects.all()} == {0}
        assert {row.start.timestamp() % row.span for row in StepRollUp.objects.all()} == {0}

    def test_what_a_service_accepts_for_later_has_not_failed(self):
        run_to_end(new_task())
        accepted = Attempt.objects.earliest("id")
        accepted.pk, accepted.number, accepted.outcome = None, 2, "later"
        accepted.save(force_insert=True)
        rollups.count(START, END)
        assert summed(StepRollUp, STEPS) == (3, 0, 0)

    def test_adjacent_windows_count_each_event_once(self):
        some_history()
        moments = sorted(Attempt.objects.values_list("ended_at", flat=True))
        cuts = [START, *moments, END]  # what lies on a cut belongs to the window after it
        for start, end in pairwise(cuts):
            rollups.count(start, end)
        assert summed(TaskRollUp, TASKS) == (4, 2, 1, 0)
        assert summed(StepRollUp, STEPS) == (4, 1, 1)
        took = [
            took for _, took in StepRollUp.objects.filter(span=7200).values_list("step", "took")
        ]
        assert sum(merged(took)) == 4

    def test_percentiles_match_those_of_the_attempts(self):
        task = new_task()
        for length in (0.1, 0.2, 0.4, 0.8):
            Attempt.objects.create(
                step=task.steps.first(), number=100 + int(length * 10), generation=1, outcome="done",
                scheduler="s", dispatched_at=END - timedelta(days=1),
                ended_at=END - timedelta(days=1) + timedelta(seconds=length),
            )  # fmt: skip
        rollups.count(START, END)
        counts = merged(StepRollUp.objects.filter(span=7200).values_list("took", flat=True))
        assert percentile(counts, 0.5) == pytest.approx(0.2, rel=0.2)
        assert percentile(counts, 1.0) == pytest.approx(0.8, rel=0.2)

    def test_gate_samples_keep_the_worst(self):
        Policy.objects.filter(agent="greeter").update(window=2)
        for _ in range(3):
            new_task()
        requests = claimed()
        rollups.update(LEADER)
        record([reply_to(request) for request in requests])
        RollUpMark.objects.update(noted_until=None)
        rollups.update(LEADER)
        row = GateRollUp.objects.get(agent="greeter", span=7200)
        assert (row.samples, row.blocked_samples, row.in_flight, row.room, row.waiting) == (
            2,
            0,
            2,
            2,
            3,
        )
        assert row.oldest > 0
        hold(agent="greeter", actor="olga", reason="they move house")
        RollUpMark.objects.update(noted_until=None)
        rollups.update(LEADER)
        row.refresh_from_db()
        assert (row.samples, row.blocked_samples, row.room) == (3, 1, 0)

    def test_rows_are_kept_as_long_as_a_chart_shows_them(self):
        for span, duration in rollups.SPANS.items():
            for age in (duration - timedelta(hours=1), duration + timedelta(hours=1)):
                TaskRollUp.objects.create(
                    span=span, start=datetime.now(UTC) - age, workflow="w", took=[]
                )
        rollups.update(LEADER)
        assert TaskRollUp.objects.filter(workflow="w").count() == len(rollups.SPANS)


@pytest.mark.django_db(transaction=True)
class TestMark:
    """With transactions of their own, as a supervisor has them."""

    def test_rollup_counts_each_event_once_up_to_the_present(self):
        some_history()
        assert not rollups.update(LEADER)  # notes how far
        for _ in range(4):
            later()
            rollups.update(LEADER)
        rollups.count(RollUpMark.objects.get().until, END)  # what is too young as yet
        assert summed(TaskRollUp, TASKS) == (4, 2, 1, 0)
        assert summed(StepRollUp, STEPS) == (4, 1, 1)

    def test_former_leader_counts_nothing(self):
        rollups.update(NEXT)
        before = RollUpMark.objects.values().get()
        later()
        assert not rollups.update(LEADER)
        assert RollUpMark.objects.values().get()["epoch"] == before["epoch"] == 4

    def test_two_self_declared_leaders_count_once(self):
        some_history()
        mark_the_past()
        with other_connection() as other, other.cursor() as cursor:
            cursor.execute("SELECT * FROM orchestration_rollupmark FOR UPDATE")
            assert not rollups.update(NEXT)  # does not wait for the other one, either
            other.rollback()
        assert rollups.update(LEADER)
        assert not rollups.update(NEXT)
        assert summed(TaskRollUp, TASKS) == (4, 2, 1, 0)

    def test_late_commit_is_waited_for(self):
        mark_the_past()
        with other_connection() as other, other.cursor() as cursor:
            cursor.execute(LATE)
            RollUpMark.objects.update(noted_until=None)
            rollups.update(LEADER)  # notes how far, while the other one is at work
            later()
            assert not rollups.update(LEADER)
            other.commit()
        assert rollups.update(LEADER)
        assert summed(TaskRollUp, TASKS) == (1, 0, 0, 0)

    def test_endless_transaction_is_not_waited_for(self):
        with other_connection() as other, other.cursor() as cursor:
            cursor.execute("SELECT pg_current_xact_id()")
            rollups.update(LEADER)
            later(rollups.PATIENCE.total_seconds() + 2)
            RollUpMark.objects.update(until=DatabaseNow() - timedelta(seconds=400))
            assert rollups.update(LEADER)
            other.rollback()

    def test_leader_that_dies_while_counting_changes_nothing(self):
        some_history()
        mark_the_past()
        before = RollUpMark.objects.values().get()
        died = subprocess.run(
            [sys.executable, "-c", KEEP],
            env={**os.environ, "DATABASE_URL": database_url(), "CRASH_AT": "housekeeper.rolled_up"},
            check=False,
        )
        assert died.returncode == -signal.SIGKILL
        assert RollUpMark.objects.values().get() == before
        assert not TaskRollUp.objects.exists()
        assert rollups.update(NEXT)
        assert summed(TaskRollUp, TASKS) == (4, 2, 1, 0)

    def test_time_without_a_leader_is_caught_up_in_parts(self):
        task = new_task()
        Task.objects.filter(id=task.id).update(created_at=DatabaseNow() - timedelta(minutes=35))
        while not (mark := RollUpMark.objects.get()).noted_until:
            rollups.update(LEADER)
            assert not mark.until or mark.until > datetime.now(UTC) - timedelta(minutes=36)
        assert summed(TaskRollUp, TASKS) == (1, 0, 0, 0)
        assert mark.until > datetime.now(UTC) - timedelta(minutes=13)


LATE = """
INSERT INTO orchestration_task (id, workflow, reference, state, priority, data, reply_to,
    owner_application, statuses, overdue, complete_by, created_at)
VALUES (gen_random_uuid(), 'late', '1', 'pending', 0, '{}', '', '', 0, false, now(),
    now() - interval '20 s')
"""
KEEP = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django
django.setup()
from orchestration.console.statistics import rollups
from orchestration.cluster.leader_election import Leadership
rollups.update(Leadership(holder="supervisor-1", epoch=3))
"""


def mark_the_past():
    """Have the next count be due, and reach over all that was done until now."""
    rollups.update(LEADER)
    RollUpMark.objects.update(
        until=DatabaseNow() - timedelta(seconds=100),
        noted_until=DatabaseNow() - timedelta(seconds=6),
    )
    Task.objects.update(created_at=DatabaseNow() - timedelta(seconds=50))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE orchestration_event DISABLE TRIGGER USER")
        cursor.execute("ALTER TABLE orchestration_attempt DISABLE TRIGGER USER")
        cursor.execute("UPDATE orchestration_event SET at = clock_timestamp() - interval '40 s'")
        cursor.execute(
            "UPDATE orchestration_attempt SET ended_at = clock_timestamp() - interval '40 s'"
        )
        cursor.execute("ALTER TABLE orchestration_event ENABLE TRIGGER USER")
        cursor.execute("ALTER TABLE orchestration_attempt ENABLE TRIGGER USER")
    Task.objects.filter(ended_at__isnull=False).update(
        ended_at=DatabaseNow() - timedelta(seconds=30)
    )


def other_connection():
    return closing(psycopg2.connect(database_url()))
