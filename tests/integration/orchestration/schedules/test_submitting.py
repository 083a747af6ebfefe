"""Schedules in time: what is submitted, skipped, queued, missed and caught up; on a fake clock."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from orchestration import api, registry
from orchestration.cluster.debounce import Debounce
from orchestration.housekeeping import agent_rows
from orchestration.models import Alert, RemovedTask, Schedule, Submission, Task
from orchestration.models.retention import RemovalKey
from orchestration.monitoring import monitors
from orchestration.payloads.moments import moment
from orchestration.schedules import acts, submitting
from orchestration.testing.outcomes import done, rejected
from tests.support.operators import person

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_schedules")]
ADA = {"name": "Ada"}


@pytest.fixture
def start(run):
    """The first due time: ten seconds from now."""
    run.script("greeter.greet", done(id="g1"))
    return (run.clock.now + timedelta(seconds=10)).replace(microsecond=0)


def put(start, every=60, name="minutely", **options):
    options = {"workflow": "greet", "data": ADA, "every": every, "start_at": start, **options}
    api.schedule(name, **options)
    return Schedule.objects.get(name=name)


def due_times(start, name="minutely"):
    """Return the due times of the tasks, in minutes from the first one."""
    known = Task.objects.filter(reference__startswith=f"{name}/").values_list(
        "reference", flat=True
    )
    return sorted(round((moment_of(reference) - start).total_seconds() / 60) for reference in known)


def moment_of(reference):
    return moment(reference.rpartition("/")[2])


def stuck(run):
    """Let tasks stay in error until a person acts."""
    run.script("greeter.greet", rejected("no"))


def test_each_due_time_is_a_task_under_its_reference(run, start):
    put(start, due_field="at", zone="Europe/Berlin")
    run.wait(9)
    assert not Task.objects.exists()
    run.wait(150)
    assert due_times(start) == [0, 1, 2]
    task = Task.objects.get(reference=f"minutely/{start:%Y-%m-%dT%H:%M:%SZ}")
    assert task.state == "processed"
    assert task.data["name"] == "Ada"
    assert moment_of(f"/{task.data['at']}") == start
    row = Schedule.objects.get()
    assert (row.submitted, row.skipped, row.missed) == (3, 0, 0)
    assert row.due_at == start + timedelta(minutes=3)
    assert row.last_due == start + timedelta(minutes=2)


def test_tasks_of_schedules_take_turns_with_others_as_one_key(run, start):
    put(start)
    put(start, name="own", fairness_key="nights", priority=3)
    run.wait(11)
    keys = dict(Task.objects.values_list("reference", "fairness_key"))
    assert sorted(keys.values()) == ["nights", "schedules"]
    assert Task.objects.get(fairness_key="nights").priority == 3


def test_finish_passes_over_schedules(run, start):
    put(start)
    task = run.submit("greet", ADA)
    run.finish()
    assert task.state == "processed"
    assert run.clock.elapsed == 0


def test_due_time_is_skipped_while_the_last_task_is_in_error(run, start):
    stuck(run)
    put(start)
    run.wait(130)
    assert due_times(start) == [0]
    row = Schedule.objects.get()
    assert (row.submitted, row.skipped) == (1, 2)
    assert row.skipped_due == start + timedelta(minutes=2)
    assert row.skipped_behind == row.last_reference == f"minutely/{start:%Y-%m-%dT%H:%M:%SZ}"


def test_one_waits_for_the_end_of_the_last_task(run, start):
    stuck(run)
    put(start, overlap="queue")
    run.wait(130)
    row = Schedule.objects.get()
    assert due_times(start) == [0]
    assert (row.waiting_due, row.skipped) == (start + timedelta(minutes=1), 1)
    task = Task.objects.get()
    run.script("greeter.greet", done(id="g1"))
    api.request_undo("greet", task.reference, actor="ann", reason="wrong", id=task.id)
    run.wait(40)
    assert due_times(start) == [0, 1]
    assert Schedule.objects.get().waiting_due is None


def test_overlap_is_allowed(run, start):
    stuck(run)
    put(start, overlap="allow")
    run.wait(130)
    assert due_times(start) == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "expected", "missed"),
    [
        ({"catch_up": "none"}, [0, 61], 60),
        ({}, [0, 61], 60),
        ({"catch_up": "one", "catch_up_within": 60.0}, [0, 61], 60),
        ({"catch_up": "all", "overlap": "allow"}, list(range(62)), 0),
        ({"catch_up": "all", "overlap": "queue", "every": 600}, list(range(0, 61, 10)), 0),
        ({"catch_up": "all", "overlap": "allow", "catch_up_within": 180.0}, [0, 59, 60, 61], 58),
    ],
)
def test_after_an_outage_catch_up_decides(run, start, options, expected, missed):
    put(start, **options)
    run.wait(11)
    outage(run, start + timedelta(minutes=61, seconds=5))
    while Schedule.objects.filter(Q(due_at__lte=run.clock.now) | Q(waiting_due__isnull=False)):
        run.clock.move(0.1)  # the next due time does not come meanwhile
        Schedule.objects.update(look_at=run.clock.now)
        run.go()
    assert due_times(start) == expected
    assert Schedule.objects.get().missed == missed


@pytest.mark.parametrize(("late", "expected"), [(59, [0, 5]), (61, [0])])
def test_without_catch_up_a_minute_late_is_still_in_time(run, start, late, expected):
    put(start, every=300, catch_up="none")
    run.wait(11)
    outage(run, start + timedelta(seconds=300 + late))
    run.go()
    assert due_times(start) == expected


def outage(run, until):
    """Let nothing run until a moment; all processes are back then."""
    run.clock.move_to(until)
    run._staff()


def test_catch_up_submits_few_at_once(run, start):
    put(start, catch_up="all", overlap="allow")
    run.wait(11)
    outage(run, start + timedelta(hours=1, seconds=1))
    run.go()
    assert len(due_times(start)) == 11
    run.wait(1)
    assert len(due_times(start)) == 21


def test_schedule_that_is_changed_while_it_is_due_does_not_fire_by_its_old_time(run, start):
    put(start)
    run.clock.move(20)  # it is due
    put(start, every=3600)
    run.go()
    assert due_times(start) == []
    assert Schedule.objects.get().due_at == start + timedelta(hours=1)


def test_what_does_not_change_when_it_is_due_keeps_its_position(run, start):
    put(start)
    run.clock.move(20)
    put(start, data={"name": "Grace"})
    run.go()
    assert Task.objects.get().data == {"name": "Grace"}


def test_paused_schedule_submits_nothing_and_catches_nothing_up(run, start):
    ann, row = person("ann"), put(start)
    run.wait(11)
    assert acts.set_paused(row.id, True, user=ann, reason="holidays")
    assert not acts.set_paused(row.id, True, user=ann, reason="again")
    run.wait(300)
    assert acts.set_paused(row.id, False, user=ann, reason="back")
    run.wait(60)
    assert due_times(start) == [0, 6]
    versions = Schedule.history.order_by("history_id")
    assert [version.history_change_reason for version in versions] == [None, "holidays", "back"]
    assert versions[1].history_user == ann


def test_run_now_is_a_task_beside_the_due_times(run, start):
    row, reference = put(start), "minutely/now-" + "0" * 32
    known = {"actor": "ann", "reason": "to see"}
    assert acts.run_now(row, reference, **known)
    assert not acts.run_now(row, reference, **known)  # the form was sent twice
    run.wait(11)
    assert Task.objects.count() == 2
    row.refresh_from_db()
    assert (row.submitted, row.last_due) == (2, start)


def test_run_now_is_refused_while_the_last_task_has_not_ended(run, start):
    stuck(run)
    row = put(start)
    run.wait(11)
    with pytest.raises(acts.StillGoing):
        acts.run_now(row, "minutely/now-" + "0" * 32, actor="ann", reason="to see")
    assert Task.objects.count() == 1


@pytest.fixture
def gone():
    """Remove the workflow `greet` from the code, in this block."""
    workflow = registry.workflows.pop("greet")
    yield workflow
    registry.workflows["greet"] = workflow


def look():
    monitors.look(Debounce())
    return set(
        Alert.objects.filter(closed_at=None, fingerprint__contains="schedule").values_list(
            "fingerprint", flat=True
        )
    )


def test_schedule_of_a_removed_workflow_says_so_and_waits_longer_each_time(run, start, request):
    row = put(start)
    workflow = request.getfixturevalue("gone")
    looks = []
    for _ in range(90):
        run.clock.move(1)
        run._sweep()
        row.refresh_from_db()
        looks.append(row.tries)
    assert "greet" in row.problem
    assert 4 < row.tries < 9  # not once a second
    assert look() == {"system/schedule/failing/greet"}
    registry.workflows["greet"] = workflow
    run.wait(300)
    row.refresh_from_db()
    assert (row.problem, row.tries) == ("", 0)
    assert look() == set()
    assert due_times(start)[-1] >= 6


def test_schedule_that_fails_does_not_stop_the_others(run, start):
    broken = [put(start, name=f"broken-{number}") for number in range(3)]
    put(start)
    Schedule.objects.filter(id__in=[row.id for row in broken]).update(data={"nobody": 1})
    run.wait(11)
    assert due_times(start) == [0]
    assert Schedule.objects.exclude(problem="").count() == 3
    Schedule.objects.filter(name="broken-0").get().save()  # an admin's save has it tried at once
    assert Schedule.objects.get(name="broken-0").problem == ""


def test_task_that_its_workflow_refuses_is_a_dead_letter_and_the_next_one_runs(
    run, start, monkeypatch
):
    def refuse(batch):
        raise api.Refused("not today")

    workflow = registry.workflows["greet"]
    put(start)
    monkeypatch.setitem(vars(workflow), "record", refuse)
    run.wait(11)
    assert Submission.objects.get().reason == "not today"
    monkeypatch.setitem(vars(workflow), "record", lambda batch: None)
    run.wait(60)
    assert due_times(start) == [1]
    assert Schedule.objects.get().problem == ""


def test_late_schedule_is_an_alert(run, start):
    put(start)
    assert look() == set()
    run.clock.move(90)
    assert look() == {"system/schedule/late/greet"}
    run.go()
    assert look() == set()


def test_declared_schedule_has_its_first_values_and_admins_change_them(run, start, monkeypatch):
    declared = api.Schedule(name="declared", workflow="greet", data=ADA, every=60, start_at=start)
    monkeypatch.setitem(registry.schedules, "declared", declared)
    agent_rows.ensure()
    row = Schedule.objects.get()
    assert (row.declared, row.every) == (True, 60)
    row.every = 3600
    row.save()
    agent_rows.ensure()
    assert Schedule.objects.get().every == 3600
    for change in (lambda: put(start, name="declared"), lambda: api.unschedule("declared")):
        with pytest.raises(ValueError, match="declared by code"):
            change()
    assert Schedule.objects.get().every == 3600


def test_schedule_that_code_declares_no_more_submits_nothing_and_says_why(run, start, monkeypatch):
    put(start)
    Schedule.objects.update(declared=True)
    run.wait(80)
    assert due_times(start) == []
    assert "No code declares" in Schedule.objects.get().problem
    assert look() == {"system/schedule/failing/greet"}
    assert api.unschedule("minutely")
    assert look() == set()


@pytest.mark.parametrize(
    "wrong",
    [
        {"every": 0},
        {"every": 1.5},
        {"every": None},
        {"cron": "0 2 * * *"},
        {"every": None, "start_at": None, "cron": "0 2 31 2 *"},
        {"zone": "Mars"},
        {"start_at": None},
        {"overlap": "never"},
        {"catch_up": "all"},
        {"catch_up_within": 5},
        {"jitter": -1},
        {"jitter": 60},
        {"workflow": "grete"},
        {"data": {"nobody": 1}},
        {"data": ["Ada"]},
        {"data": {"name": {1, 2}}},
        {"priority": 10**6},
        {"fairness_key": "k" * 101},
        {"due_field": "f" * 61},
        {"zone": 7},
        {"name": "a/b"},
        {"name": "n" * 61},
        {"name": ""},
    ],
    ids=str,
)
def test_wrong_schedule_is_refused_and_nothing_changes(run, start, wrong):
    put(start)
    before = Schedule.objects.values().get()
    with pytest.raises(ValueError, match="schedule"):
        put(start, **wrong)
    assert Schedule.objects.values().get() == before


def test_same_schedule_again_changes_nothing(run, start):
    put(start)
    before = Schedule.objects.values().get()
    run.clock.move(5)
    put(start)
    assert Schedule.objects.values().get() == before
    assert Schedule.history.count() == 1


def test_due_time_that_is_met_again_has_one_task_though_the_input_is_another(run, start):
    """As after a clock that went back, or a restore of the row alone."""
    put(start)
    run.wait(70)
    Schedule.objects.update(due_at=start, look_at=start, data={"name": "Grace"})
    run.wait(10)
    assert due_times(start) == [0, 1]
    assert not Submission.objects.exists()
    assert set(Task.objects.values_list("data__name", flat=True)) == {"Ada"}


def test_due_time_of_a_removed_task_is_not_run_again(run, start):
    put(start)
    run.wait(11)
    (known,) = Task.objects.all()
    names = ("workflow", "reference")
    RemovedTask.objects.bulk_create(
        RemovedTask(key=key, content=uuid4(), removed_at=run.clock.now)
        for key in Task.objects.annotate(key=RemovalKey(*names)).values_list("key", flat=True)
    )
    Task.objects.filter(id=known.id).update(reference="another")
    Schedule.objects.update(due_at=start, look_at=start, last_reference="")
    run.wait(1)
    assert not Task.objects.filter(reference=known.reference).exists()
    assert not Submission.objects.exists()


@pytest.mark.parametrize("count", [1, 150])
def test_look_costs_the_same_statements_for_any_number_of_schedules(run, start, count):
    for number in range(count):
        put(start, name=f"n-{number}", overlap="skip")
    run.clock.move(15)
    with CaptureQueriesContext(connection) as asked:
        looked, submitted = submitting.submit(
            run.clock.now, list(Schedule.objects.values_list("id", flat=True))
        )
    assert (looked, submitted) == (count, count)
    assert len(asked) <= 8


def test_due_schedule_is_found_by_its_index(run, start):
    put(start)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN SELECT {submitting.SUBMIT_SCHEDULED.due}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "schedule_due" in plan
