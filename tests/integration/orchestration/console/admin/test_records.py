"""The records of the engine in the admin: shown, filtered, and read-only."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration import api
from orchestration.cluster import heartbeat
from orchestration.cluster.leader_election import Leadership
from orchestration.console.admin.settings import SettingAdmin
from orchestration.console.statistics import rollups
from orchestration.messaging.messages import Evidence
from orchestration.models import (
    AccountTie,
    ApplicationRole,
    AuditRun,
    ClockJump,
    Export,
    ExternalId,
    Hold,
    Incident,
    IncidentHit,
    IncidentHour,
    IncidentTally,
    Join,
    JumpedTime,
    NotificationChannel,
    Operation,
    OperationItem,
    RemovedTask,
    SavedView,
    SoloAct,
    Step,
    Submission,
    Task,
    UndoRequest,
    Wait,
)
from orchestration.models.fields import DatabaseNow
from orchestration.models.inbox import DeadLetter, StatusMessage
from orchestration.people import roles
from tests.support.engine import in_error, new_task
from tests.support.operators import press
from tests.support.page import page

pytestmark = pytest.mark.django_db
RECORDS = ["task", "step", "wait", "externalid", "join", "statestore", "attempt", "attemptevidence",
           "event", "alert", "notification", "submission", "statusmessage", "gate", "hold", "worker", "lease",
           "clockjump", "jumpedtime", "auditrun", "incident",
           "incidenthit", "incidenthour", "incidenttally", "operation", "operationitem", "savedview",
           "deadletter", "taskrequest", "undorequest", "taskrollup", "steprollup", "gaterollup",
           "rollupmark", "removedtask", "applicationrole", "accounttie", "soloact", "export"]  # fmt: skip
SET_UP = ["notificationchannel", "application", "applicationtoken"]  # by admins


@pytest.fixture
def _some_of_each(client):
    NotificationChannel.objects.create(name="Ann", kind="email", address="ann@example.com")
    Hold.objects.create(scope="agent", agent="other", cause="hand", reason="moving", actor="ann")
    task = new_task("t-1", reply_to="shop")
    press(client, in_error(task, evidence=Evidence(answer="no", status=500)))
    in_error(new_task("t-2"))
    Submission.objects.create(workflow="greet", reference="s-1", data={})
    DeadLetter.objects.create(queue="scheduler", body="{}", reason="no such row", tries=1)
    AuditRun.objects.create(by="ann")
    ApplicationRole.objects.create(role="party_web", application="party", workflows=["greet"])
    Export.objects.create(
        actor="ann", what="tasks", format="csv", columns="task", personal=False, rows=3
    )
    RemovedTask.objects.create(key=uuid4(), content=uuid4(), removed_at=DatabaseNow())
    AccountTie.objects.create(account=1, set_up_by=2, by_superuser=False, kind="created")
    SoloAct.objects.create(account=1, items=1)
    ClockJump.objects.create(seconds=-3600, by="supervisor-1")
    JumpedTime.objects.create(
        kind="step", key="1", field="resolve_by", was=DatabaseNow(), becomes=DatabaseNow()
    )
    operation = Operation.objects.create(act="hold", selection={"tasks": []}, actor="ann")
    OperationItem.objects.create(operation=operation, task=task, seen="pending")
    cause = Incident.objects.create(fingerprint="v1-x", version=1, title="greet: hello failed")
    step = Step.objects.get(process_state="error")
    IncidentHit.objects.create(incident=cause, step=step)
    IncidentTally.objects.create(incident=cause, failures=1)
    IncidentHour.objects.create(incident=cause, hour=step.ended_at, failures=1)
    SavedView.objects.create(owner=User.objects.get(username="ada"), name="mine")
    Join.objects.create(step=step, task=task)
    Wait.objects.create(step=step, task=task, person="fraud")
    ExternalId.objects.create(step=step, task=task, agent="greeter", external_id="x", attempt=1)
    UndoRequest.objects.create(step=step, task=task, unmended=True, requested_by="s", reason="r")
    api.request_undo("greet", "t-1", actor="ann", reason="no", id=uuid4())
    heartbeat.report("scheduler")
    rollups.update(Leadership(holder="supervisor-1", epoch=1))
    rollups.count(datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
    assert StatusMessage.objects.exists()


def test_every_model_is_a_record_a_setting_or_set_up():
    admin.autodiscover()
    for model, registered in admin.site._registry.items():
        if model._meta.app_label == "orchestration":
            is_setting = model._meta.model_name not in [*RECORDS, *SET_UP]
            assert isinstance(registered, SettingAdmin) == is_setting
    models = apps.get_app_config("orchestration").get_models()
    shown = {model for model in models if not model.__name__.startswith("Historical")}
    assert shown <= set(admin.site._registry)


def test_admin_role_may_view_each_kind_of_record():
    lacking = {name for name in RECORDS if f"orchestration.view_{name}" not in roles.ADMIN}
    assert lacking == {"savedview", "rollupmark"}


@pytest.mark.usefixtures("_some_of_each")
@pytest.mark.parametrize("name", RECORDS)
def test_records_are_read_only(client, name):
    model = apps.get_model("orchestration", name)
    row = model.objects.first()
    before = model.objects.values().get(pk=row.pk)
    change = reverse(f"admin:orchestration_{name}_change", args=[row.pk])
    assert client.get(reverse(f"admin:orchestration_{name}_changelist")).status_code == 200
    assert client.get(change).status_code == 200
    assert client.post(change, {"state": "processed"}).status_code == 403
    assert client.get(reverse(f"admin:orchestration_{name}_add")).status_code == 403
    delete = reverse(f"admin:orchestration_{name}_delete", args=[row.pk])
    assert client.post(delete, {"post": "yes"}).status_code == 403
    assert model.objects.values().get(pk=row.pk) == before


@pytest.mark.usefixtures("_some_of_each")
@pytest.mark.parametrize(
    ("name", "query", "count"),
    [
        ("task", "q=t-", 2),
        ("task", "q=t-1", 1),
        ("task", "state__exact=error", 1),
        ("task", "workflow=greet", 2),
        ("task", "workflow=order", 0),
        ("step", "process_state=error", 1),
        ("step", "process_state=processing", 1),
        ("alert", "severity__exact=critical", 2),
        ("alert", "closed_at__isempty=1", 1),
        ("submission", "refused_at__isempty=1", 1),
    ],
)
def test_lists_are_filtered(client, name, query, count):
    page = client.get(reverse(f"admin:orchestration_{name}_changelist") + f"?{query}")
    assert page.status_code == 200
    assert page.context["cl"].result_count == count


@pytest.mark.usefixtures("_some_of_each")
@pytest.mark.parametrize("name", RECORDS)
def test_lists_count_at_most_a_limit(client, name):
    with CaptureQueriesContext(connection) as queries:
        client.get(reverse(f"admin:orchestration_{name}_changelist"))
    own = [query["sql"] for query in queries if f"orchestration_{name}" in query["sql"]]
    counts = [sql for sql in own if "COUNT(" in sql]
    assert counts
    assert all("LIMIT" in sql for sql in counts)
    assert not any("DISTINCT" in sql for sql in own)


def test_list_of_tasks_has_numbers_and_marks_only_what_is_overdue(client):
    Task.objects.filter(id=new_task("t-1").id).update(label="7KQ4M-9XD2P", overdue=True)
    plain = new_task("t-2")
    listed = page(client.get(reverse("admin:orchestration_task_changelist")))
    assert set(listed.texts(".field-called")) == {"7KQ4M-9XD2P", f"{str(plain.id)[:13]}…"}
    assert sorted(listed.texts(".field-overdue")) == ["-", "overdue"]
    assert not listed.all('img[alt="False"]')
    (created,) = {len(text) for text in listed.texts(".field-created_at")}
    assert created == len("2026-11-22 05:20:31")
