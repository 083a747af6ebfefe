"""The overview: what needs attention, what waits, and the processes."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F

from orchestration.alerting import alerts
from orchestration.cluster import heartbeat
from orchestration.console.queries import causes
from orchestration.console.queries.overview import SHOWN
from orchestration.console.queries.trends import RANGES
from orchestration.console.statistics import rollups
from orchestration.database.capped_counts import CAP
from orchestration.models import (
    Alert,
    Gate,
    Incident,
    Lease,
    Operation,
    Policy,
    Step,
    Submission,
    Task,
    Worker,
)
from orchestration.models.alert import Severity
from orchestration.models.fields import DatabaseNow
from orchestration.models.history import EventKind
from orchestration.transitions.holds import hold
from orchestration.transitions.replies import record
from tests.support.engine import (
    claimed,
    in_error,
    new_task,
    postpone_retries,
    reply_to,
    run_to_end,
    sweep,
    watch_of,
)
from tests.support.operators import LEADER, browser, fail, person, press, staffed
from tests.support.page import listed, page, problems_of, query_count

pytestmark = pytest.mark.django_db


def row_of(client, step) -> list[str]:
    """Return the cells of a failed step."""
    row = page(client.get("/ops/")).only(f"#failed-{step.id}")
    assert row.only("a[data-open]")["href"] == f"/ops/tasks/{step.task_id}/#step-{step.id}"
    return row.rows()[0]


def cause_of(client, name) -> list[str]:
    """Return the cells of a cause: what, tasks, oldest, value, next."""
    row = page(client.get("/ops/")).only(f'tr[data-cause="{name}"]')
    return [cell.text for cell in row.cells()]


def test_overview_counts_and_names_tasks_in_error(client):
    run_to_end(new_task())
    step = in_error(new_task("bad-1"))
    shown = page(client.get("/ops/"))
    incident = f"/ops/incidents/{step.incident_id}/"
    assert shown.only(".verdict.bad").only(f'a[data-lead][href="{incident}"]')
    assert shown.only("#count-errors").text == "1"
    assert cause_of(client, f"incident/{step.incident_id}")[:2] == [
        "hello fails at greeter (rejected_code)", "1",
    ]  # fmt: skip
    assert row_of(client, step)[:3] == ["bad-1 greet", "hello greeter", "rejected_code"]


def test_messages_of_services_require_the_personal_data_permission(client):
    step = in_error(new_task("bad-1"))
    assert "it was rejected" not in client.get("/ops/").text
    trusted = browser(person("bea", "operate", "see_personal"))
    assert row_of(trusted, step)[2] == "rejected_code it was rejected"


def test_failures_are_grouped_by_cause(client):
    step = in_error(new_task("bad-1"))
    in_error(new_task("bad-2"))
    Task.objects.update(value=5520, currency="EUR")
    name = f"incident/{step.incident_id}"
    assert [cause_of(client, name)[place] for place in (1, 3)] == ["2", "€110.40"]
    link = page(client.get("/ops/")).only(f'tr[data-cause="{name}"]').cells()[1].only("a")
    assert sorted(listed(client.get(link["href"]))) == ["bad-1", "bad-2"]


def test_oldest_of_a_cause_is_the_one_longest_in_error(client):
    first, second = in_error(new_task("bad-1")), in_error(new_task("bad-2"))
    sweep(LEADER)
    Step.objects.filter(id=second.id).update(ended_at=DatabaseNow() - timedelta(minutes=10))
    row = page(client.get("/ops/")).only(f'tr[data-cause="incident/{first.incident_id}"]')
    second.refresh_from_db()
    since = datetime.fromisoformat(row.cells()[2].only("time")["datetime"])
    assert abs(since - second.ended_at) < timedelta(milliseconds=2)


@pytest.mark.parametrize(("most", "value"), [(2, "€30.00+"), (3, "€30.00")])
def test_value_of_more_tasks_than_are_looked_at_is_a_lower_bound(client, monkeypatch, most, value):
    monkeypatch.setattr(causes, "CAP", most)
    for _ in range(3):
        new_task()
    Task.objects.update(value=1000, currency="EUR")
    hold(agent="greeter", actor="olga", reason="they are moving house")
    assert cause_of(client, "agent/greeter")[3] == value


def test_tasks_that_will_be_undone_say_when(client):
    step = in_error(new_task("bad-1"))
    name = f"incident/{step.incident_id}"
    sweep(LEADER)
    row = f'tr[data-cause="{name}"]'
    assert page(client.get("/ops/")).only(row).cells()[4].all("time") == []
    Step.objects.filter(id=step.id).update(resolve_by=DatabaseNow() + timedelta(minutes=30))
    (time,) = page(client.get("/ops/")).only(row).cells()[4].all("time")
    step.refresh_from_db()
    undo = datetime.fromisoformat(time["datetime"])
    assert abs(undo - step.resolve_by) < timedelta(milliseconds=2)


def test_first_sentence_names_the_cause_with_most_tasks(client):
    in_error(new_task("bad-1"))
    Policy.objects.filter(agent="greeter").update(backoff=100, backoff_cap=100)
    for number in range(2):
        new_task(f"lost-{number}")
    fail(claimed(), "unknown", threshold=4)
    sweep(LEADER)
    (lost,) = Incident.objects.filter(outcome="unknown")
    # retried, so nothing of it is in error
    shown = page(client.get("/ops/")).only(".verdict")
    assert shown.only("[data-lead]")["href"] == f"/ops/incidents/{lost.id}/"
    assert cause_of(client, f"incident/{lost.id}")[1] == "2"
    assert re.match(r"next attempt in \d+ (s|min)", cause_of(client, f"incident/{lost.id}")[4])
    # as its agent lets nothing through, that is the cause; what stands in error has its own
    new_task("waiting-1")
    Gate.objects.filter(agent="greeter").update(
        state="open", probe_at=DatabaseNow() + timedelta(seconds=90)
    )
    Task.objects.update(value=1000, currency="EUR")
    shown = page(client.get("/ops/"))
    assert shown.only(".verdict.bad").only("[data-lead]")["href"] == "/ops/agents/#agent-greeter"
    what, tasks, _, value, following = cause_of(client, "agent/greeter")
    assert what.startswith("greeter loses replies (unknown_code)")
    assert (tasks, value, shown.only("#count-blocked").text) == ("3", "€30.00", "3")
    assert re.match("next probe in 1 min", following)
    assert len(shown.all("tr[data-cause]")) == 2


def test_step_that_waits_at_a_blocked_agent_counts_once(client):
    new_task("slow-1")
    Policy.objects.filter(agent="greeter").update(backoff=100, backoff_cap=100)
    fail(claimed(), threshold=4)
    hold(task=Task.objects.get().id, actor="olga", reason="they ask")
    hold(agent="greeter", actor="olga", reason="they are moving house")
    shown = page(client.get("/ops/"))
    assert [row["data-cause"] for row in shown.all("tr[data-cause]")] == ["agent/greeter"]
    assert shown.only("#count-blocked").text == "1"


def test_held_task_is_a_cause(client):
    task = new_task("held-1")
    new_task("free-1")
    hold(task=task.id, actor="olga", reason="they ask")
    shown = page(client.get("/ops/"))
    link = shown.only('tr[data-cause="hold/"]').cells()[1].only("a")
    assert (link.text, listed(client.get(link["href"]))) == ("1", ["held-1"])


def test_held_agent_without_tasks_is_shown_below_any_number_of_causes(client):
    for number in range(7):
        step = in_error(new_task(f"bad-{number}"))
        incident = Incident.objects.get(id=step.incident_id)
        incident.pk, incident.fingerprint = None, f"cause-{number}"
        incident.save()
        Step.objects.filter(id=step.id).update(incident=incident)
    hold(agent="shipping", actor="olga", reason="they are moving house")
    names = [row["data-cause"] for row in page(client.get("/ops/")).all("tr[data-cause]")]
    assert (len(names), names[-1]) == (8, "agent/shipping")


def test_hold_on_everything_is_one_cause(client):
    new_task()
    hold(actor="olga", reason="they are moving house")
    (row,) = page(client.get("/ops/")).all("tr[data-cause]")
    assert row["data-cause"] == "agent/"
    assert row.cells()[1].text == "1"


def test_held_agent_is_shown_with_the_reason(client):
    assert page(client.get("/ops/")).all('section[aria-labelledby="h-causes"]') == []
    hold(agent="greeter", actor="olga", reason="they are moving house")
    what, tasks, *_ = cause_of(client, "agent/greeter")
    assert what == "greeter is held by olga Reason: [hidden]"
    trusted = browser(person("bea", "operate", "see_personal"))
    assert cause_of(trusted, "agent/greeter")[0].endswith("Reason: they are moving house")
    assert tasks == "0"
    verdict = page(client.get("/ops/")).only(".verdict.bad")
    assert verdict.only("[data-lead]")["href"] == "/ops/agents/#agent-greeter"


def test_alert_is_acknowledged_from_the_overview_and_named_in_the_audit(client):
    alerts.raise_alert("machinery/x", severity=Severity.WARNING, title="The disk is full")
    assert not page(client.get("/ops/")).section("h-alerts").all("form")
    watch = browser(person("bea", "operate", "acknowledge"))
    form = page(watch.get("/ops/")).section("h-alerts").only("form")
    assert watch.post(form["action"])["Location"] == "/ops/"
    (row,) = page(watch.get("/ops/")).section("h-alerts").rows()
    assert row[-1] == "acknowledged by bea"
    assert "The disk is full" in page(watch.get("/ops/audit/")).rows()[0]  # as what it was done to


def test_critical_alert_goes_before_newer_warnings(client):
    for number in range(SHOWN + 1):
        severity = Severity.WARNING if number else Severity.CRITICAL
        alerts.raise_alert(f"system/clock/{number}", severity=severity, title=f"t{number}")
    shown = page(client.get("/ops/"))
    rows = shown.section("h-alerts").rows()
    assert (len(rows), rows[0][0].split()[:2]) == (SHOWN, ["critical", "t0"])
    assert shown.only(".verdict.bad").only("[data-lead]")["href"] == "/ops/system/#h-processes"


def test_badges_count_what_waits_for_a_person(client):
    def badges():
        nav = page(client.get("/ops/")).only("#nav")
        return {
            link["id"]: badge.numbers()[0] for link in nav.all("a") for badge in link.all(".count")
        }

    in_error(new_task("bad-1"))
    sweep(LEADER)
    new_task("retried-1")
    fail(claimed(), threshold=4)  # an incident too, which heals by itself
    sweep(LEADER)
    Operation.objects.create(act="hold", state="running", reason="r", selection={}, actor="ann")
    alerts.raise_alert("gate/greeter", severity=Severity.WARNING, title="open")
    assert badges() == {"nav-overview": 1, "nav-tasks": 1, "nav-incidents": 1}
    Operation.objects.update(state="paused")
    alerts.acknowledge([Alert.objects.get(fingerprint="gate/greeter").id], by="ann")
    assert badges() == {"nav-operations": 1, "nav-tasks": 1, "nav-incidents": 1}


def test_queue_without_a_worker_is_shown(client):
    staffed()
    silent = Worker.objects.filter(instance="greeter-1")
    silent.update(seen_at=DatabaseNow() - timedelta(seconds=30))
    response = client.get("/ops/")
    assert "“greeter”" in problems_of(response)["queues"]
    leader = page(response).only('[data-leader="supervisor"]')
    assert leader["data-leads"] == "yes"
    assert "supervisor-1 (epoch 1)" in leader.text
    heartbeat.report("greeter")
    assert problems_of(client.get("/ops/")) == {}


def test_retry_shows_its_time_and_number_of_failures(client):
    new_task("slow-1")
    Policy.objects.filter(agent="greeter").update(backoff=100, backoff_cap=100)
    fail(claimed(), threshold=4)
    (row,) = page(client.get("/ops/")).section("h-retrying").rows()
    assert row[:2] == ["slow-1 greet", "hello greeter"]
    assert re.match(r"in \d+ (s|min) .*, after 1 of 4 failure", row[2])


def test_task_whose_first_attempt_is_for_later_is_not_retried(client):
    later = new_task("later-1")
    Step.objects.filter(task=later, process_state="pending").update(
        run_after=DatabaseNow() + timedelta(days=2)
    )
    shown = page(client.get("/ops/"))
    assert "0 retrying" in shown.texts(".figure")
    assert not shown.all("#h-retrying")
    assert listed(client.get("/ops/tasks/?q=is:retrying")) == []
    assert "begins in" in page(client.get(f"/ops/tasks/{later.id}/")).only(".ops-now").text
    hold(agent="greeter", actor="olga", reason="they are moving house")
    assert cause_of(client, "agent/greeter")[1] == "0"


def test_missing_leader_is_shown(client):
    staffed()
    Lease.objects.update(expires_at=F("renewed_at") - timedelta(seconds=1))
    response = client.get("/ops/")
    assert list(problems_of(response)) == ["supervisor", "housekeeper"]
    for name in ("supervisor", "housekeeper"):
        leader = page(response).only(f'[data-leader="{name}"]')
        assert leader["data-leads"] == "no"
        assert f"{name}-1 (epoch 1)" in leader.text  # who led last


def test_unavailable_redis_is_shown(client, settings, tmp_path):
    staffed()
    settings.REDIS_URL = f"unix://{tmp_path}/missing.sock"
    assert list(problems_of(client.get("/ops/"))) == ["redis"]


def test_dead_letters_and_waiting_submissions_are_counted(client):
    Submission.objects.create(workflow="greet", reference="waiting-1", data={})
    Submission.objects.create(
        workflow="greet",
        reference="odd-1",
        data={},
        refused_at=DatabaseNow(),
        reason="the input has no name",
    )
    section = page(client.get("/ops/")).section("h-leader")
    assert section.only('[href="/ops/dead-letters/"]').numbers() == [1]
    assert section.only("[data-inbox]").numbers()[0] == 1
    assert "waiting-1" not in client.get("/ops/").text


def test_counts_are_capped(client):
    due = DatabaseNow()
    new = (
        Task(workflow="greet", reference=str(number), data={}, complete_by=due)
        for number in range(CAP + 1)
    )
    Task.objects.bulk_create(new, batch_size=1000)  # none takes longer than an idle transaction may
    figure = page(client.get("/ops/")).only('a.figure[href="/ops/tasks/?state=processing"]')
    assert figure.only("b").text == "1,000+"


def rolled_up():
    rollups.count(datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))


def test_overview_of_a_healthy_system_has_no_problems(client):
    staffed()
    run_to_end(new_task())
    rolled_up()
    response = client.get("/ops/")
    assert problems_of(response) == {}
    shown = page(response)
    assert shown.only(".verdict.good").numbers()[0] == 1  # processed in the last hour
    for heading in ("h-alerts", "h-causes", "h-errors", "h-operations"):
        assert shown.all(f'[aria-labelledby="{heading}"]') == []


@pytest.mark.parametrize("key", [*RANGES, "", "nonsense"])
def test_charts_have_a_text_alternative(client, key):
    run_to_end(new_task())
    in_error(new_task())
    rolled_up()
    response = client.get("/ops/", {"range": key})
    trends = page(response).section("h-trends")
    chosen = RANGES.get(key, RANGES["1h"])
    assert trends.only("#h-trends").text.endswith(chosen.past)
    assert trends.only('[aria-current="true"]')["href"] == f"?range={chosen.key}#h-trends"
    counted = re.compile(r": created 2, processed 1, in error 1$")
    assert any(counted.search(title) for title in trends.texts("title"))
    # start, created, processed, undone, in error
    assert ["2", "1", "0", "1"] in [
        row[1:] for row in trends.only('details[id^="table-tasks-per"]').rows()
    ]
    assert ["hello greet", "greeter", "2", "50.0 %"] in [row[:4] for row in trends.rows()]
    assert " style=" not in response.text


def test_latest_actions_of_users_are_listed(client):
    step = in_error(new_task("bad-1"))
    press(client, step)
    trusted = browser(person("bea", "operate", "see_personal"))
    (action,) = page(trusted.get("/ops/")).section("h-acts").all("li")
    assert action.only("strong").text == "ann"
    assert EventKind.RESUBMITTED.label in action.text
    assert action.only("a").text == "hello of bad-1"
    assert "“it is repaired”" in action.text


def test_last_sweep_of_the_leader_is_shown(client):
    staffed()
    postpone_retries()
    new_task("slow-1")
    record([reply_to(request, "transient") for request in claimed()])
    watch_of("supervisor-1").step(0.0)
    leader = page(client.get("/ops/")).only('[data-leader="supervisor"]').text
    assert "Its last sweep ended within the last 10 s." in leader
    assert re.search(r"1 retried \( \d s ago \)", leader)


def test_queries_are_independent_of_the_data(client):
    staffed()
    press(client, in_error(new_task()))
    in_error(new_task())
    sweep(LEADER)
    client.get("/ops/")  # some queries are made only once
    before = query_count(client, "/ops/?range=24h")
    for number in range(3):
        press(client, in_error(new_task(f"bad-{number}")))
        in_error(new_task())
        run_to_end(new_task())
        new_task()
    Operation.objects.create(act="hold", state="waiting", reason="r", selection={}, actor="ann")
    rolled_up()
    assert query_count(client, "/ops/?range=24h") == before


def test_overdue_tasks_are_an_alert_that_links_to_them(client):
    late = new_task("late-1")
    new_task("early-1")
    Task.objects.filter(id=late.id).update(complete_by=DatabaseNow())
    sweep(LEADER)
    search = "/ops/tasks/?q=workflow:greet%20is:overdue"
    assert page(client.get("/ops/")).section("h-alerts").only(f'[href="{search}"]')
    assert listed(client.get(search)) == ["late-1"]
