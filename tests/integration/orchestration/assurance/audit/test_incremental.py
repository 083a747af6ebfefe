"""The audit by itself: hourly what changed, daily everything in slices, and an alert if none ends."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from orchestration import conf
from orchestration.assurance.audit import runner, snapshot
from orchestration.assurance.audit.schedule import LATE_AUDITS, report_late
from orchestration.cluster.debounce import Debounce
from orchestration.models import Alert, AuditRun, Event, Step, Task
from tests.support.audit_rows import no_route, orders
from tests.support.plans import explained

HOURS_AGO = timedelta(hours=3)


@pytest.fixture
def rows():
    """Twenty orders at every stage; those that ended did so three hours ago."""
    made = orders(20, no_route())
    made.write()
    at = timezone.now() - HOURS_AGO
    Task.objects.update(created_at=at)
    Task.objects.filter(ended_at__isnull=False).update(ended_at=at)
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("UPDATE orchestration_attempt SET ended_at = %s", [at])
        cursor.execute("UPDATE orchestration_event SET at = %s", [at])
        cursor.execute("SET session_replication_role = origin")
    return made


def blamed(result):
    return {(breach.invariant, breach.reference) for breach in result.violations}


def audited(ago=timedelta(hours=2), **fields):
    """Note a whole run that has ended."""
    at = timezone.now() - ago
    run = AuditRun.objects.create(**{"by": runner.DAILY, "until": at, "ended_at": at, **fields})
    AuditRun.objects.filter(id=run.id).update(started_at=at)
    return run


def break_one(reference):
    Step.objects.filter(task__reference=reference, name="reserve_stock").update(failure_count=3)


@pytest.mark.django_db(transaction=True)
class TestByItself:
    def test_first_run_looks_at_everything(self, rows):
        assert runner.run(runner.HOURLY).tasks == 20
        run = AuditRun.objects.get()
        assert (run.by, run.since) == (runner.DAILY, None)

    def test_hourly_run_looks_at_what_is_under_way_or_has_changed(self, rows):
        audited()
        old, changed = _processed()[:2]
        for reference in (old, changed):
            break_one(reference)
        task = Task.objects.get(reference=changed)
        Event.objects.create(task=task, kind="retry", actor="someone")
        result = runner.run(runner.HOURLY)
        assert result.tasks == 2  # the one that waits, and the one that changed
        assert blamed(result) == {(9, changed)}
        run = AuditRun.objects.get(by=runner.HOURLY)
        assert run.since < timezone.now() - timedelta(hours=2)

    def test_hourly_run_looks_at_what_should_have_been_undone(self, rows):
        audited()
        late = timezone.now() - timedelta(hours=3)
        Step.objects.filter(process_state="error").update(resolve_by=late)
        result = runner.run(runner.HOURLY)
        assert result.tasks == 2  # with the one that waits
        assert {invariant for invariant, _ in blamed(result)} == {1}

    def test_whole_run_finds_what_nothing_shows_as_changed(self, rows):
        audited(timedelta(days=2))
        (old, *_) = _processed()
        break_one(old)
        assert blamed(runner.run(runner.HOURLY)) == {(9, old)}

    def test_next_run_begins_where_the_last_one_that_ended_began(self, rows):
        audited(timedelta(hours=2))
        audited(timedelta(hours=1.5), by=runner.HOURLY, ended_at=None)
        runner.run(runner.HOURLY)
        since = AuditRun.objects.latest("id").since
        assert timedelta(hours=2) < timezone.now() - since < timedelta(hours=2.2)

    def test_transaction_that_is_open_is_looked_at_again(self, rows):
        other = connection.copy()
        try:
            with other.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("SELECT now()")
                ((began,),) = cursor.fetchall()
                runner.run(runner.HOURLY)
            until = AuditRun.objects.get().until
            assert until <= began
            assert until <= timezone.now() - timedelta(seconds=runner.COMMITS_WITHIN_S)
        finally:
            other.close()

    def test_each_slice_has_a_short_snapshot_of_its_own(self, rows, monkeypatch):
        monkeypatch.setattr(snapshot, "SLICE", 3)
        (old, *_) = _processed()
        break_one(old)
        open_between = []  # whether a transaction is open where a line is printed, after each slice
        report = lambda _: open_between.append(connection.in_atomic_block)  # noqa: E731
        result = runner.run("ann", ledgers=False, report=report)
        assert result.tasks == 20
        assert blamed(result) == {(9, old)}
        assert open_between == [False] * 8

    def test_slices_find_steps_and_attempts_without_owner(self, rows, monkeypatch):
        monkeypatch.setattr(snapshot, "SLICE", 3)
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            cursor.execute(
                "DELETE FROM orchestration_step WHERE id = "
                "(SELECT step_id FROM orchestration_attempt ORDER BY step_id OFFSET 5 LIMIT 1)"
                " RETURNING id"
            )
            ((step,),) = cursor.fetchall()
            cursor.execute("SET session_replication_role = origin")
        result = runner.run("ann", ledgers=False)
        assert (2, f"step {step}") in blamed(result)

    def test_whole_run_that_did_not_end_is_repeated_within_the_hour(self, rows):
        audited(timedelta(minutes=30), ended_at=None)
        assert not runner.due()
        AuditRun.objects.all().delete()
        audited(timedelta(hours=2), ended_at=None)
        assert runner.due()
        runner.run(runner.HOURLY)
        assert AuditRun.objects.latest("id").by == runner.DAILY


def _processed():
    """Return the references of processed orders."""
    return Task.objects.filter(state="processed").values_list("reference", flat=True)[5:]


@pytest.mark.django_db
class TestAge:
    LATE = LATE_AUDITS

    def late(self, monkeypatch):
        monkeypatch.setattr(conf, "LATE_AUDIT_ALERT_AFTER_S", 0)
        report_late(Debounce())
        alerts = Alert.objects.filter(closed_at=None, fingerprint__startswith=self.LATE)
        return {
            fingerprint.removeprefix(self.LATE)
            for fingerprint in alerts.values_list("fingerprint", flat=True)
        }

    def test_runs_that_do_not_end_raise_an_alert_until_one_ends(self, monkeypatch):
        audited(timedelta(hours=3))
        audited(timedelta(hours=1), by=runner.HOURLY, ended_at=None)
        assert self.late(monkeypatch) == {"hourly"}
        audited(timedelta(minutes=1), by=runner.HOURLY)
        assert self.late(monkeypatch) == set()

    def test_whole_runs_that_do_not_end_raise_one(self, monkeypatch):
        audited(timedelta(days=3))
        audited(timedelta(hours=1), by=runner.HOURLY)
        assert self.late(monkeypatch) == {"daily"}

    @pytest.mark.parametrize("ago", [timedelta(minutes=90), timedelta(minutes=1)])
    def test_run_under_way_or_missed_once_raises_none(self, monkeypatch, ago):
        audited(ago, ended_at=None)
        assert self.late(monkeypatch) == set()


class Recording:
    """Keeps each statement of an audit, with its parameters."""

    def __init__(self):
        self.statements = []

    def __call__(self, execute, statement, params, many, context):
        if re.match(r"\s*(SELECT|WITH|INSERT)\b", statement):
            self.statements.append((statement, params))
        return execute(statement, params, many, context)


# A status message is there until it was taken, a placement or an order stays.
LARGE = re.compile(r"orchestration_(task|step|attempt|event|operationitem|incidenthit)$|orders_")


@pytest.mark.django_db
def test_hourly_audit_reads_no_large_table_as_a_whole(rows):
    """Each is searched by an index, with a bound or by the keys of what is looked at."""
    recording = Recording()
    cut, since = snapshot.prepare(), timezone.now() - timedelta(hours=1)
    with connection.execute_wrapper(recording):
        snapshot.find_changed(since, cut)
        part = next(snapshot.slices(changed=True))
        snapshot.fill(cut, part, changed=True)
        finding = runner._Finding(ledgers=frozenset(), since=since)
        finding.of_slice(part)
        finding._run(runner.Scope.ALL)
    assert len(recording.statements) > len(runner.CHECKS)
    whole = []
    for statement, parameters in recording.statements:
        off = ("seqscan", "hashjoin", "mergejoin")
        for node in explained(statement, parameters, off=off):
            table = node.get("Relation Name", "")
            bounded = {"Index Cond", "Recheck Cond"} & node.keys() or _partial(node)
            if LARGE.match(table) and not bounded:
                whole.append((node["Node Type"], table, statement))
    assert whole == []


def _partial(node):
    """Return whether a node reads an index of few rows: those that are open, or have failed."""
    steps = {"step_errors", "step_of_incident", "step_alert", "step_in_error", "step_error_age"}
    return node.get("Index Name") in {*steps, "task_by_state"}
