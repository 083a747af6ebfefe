"""Archived tasks are in files before they are gone, and come back as they were."""

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db.models import JSONField, Value
from django.utils import timezone

from orchestration.assurance.retention import archive, lines
from orchestration.assurance.retention.folder import MANIFEST
from orchestration.models import (
    Attempt,
    AttemptEvidence,
    Event,
    Incident,
    IncidentHit,
    RemovedTask,
    Step,
    Task,
)
from tests.support.audit_rows import CAUSE, no_route, orders
from tests.support.together import database_url
from tests.support.violations import plant, violations

ROOT = Path(__file__).parents[5]


def everything():
    """Return each task as the line that an archive would have of it."""
    tasks = [str(key) for key in Task.objects.values_list("id", flat=True)]
    return dict(lines.write(tasks, lines.shape()))


def rows():
    """Write twenty orders at every stage; one has failed, and has odd values."""
    made = orders(20, no_route())
    made.write()
    step = Step.objects.get(task__reference=made.orders["retried"], name="reserve_stock")
    IncidentHit.objects.create(incident=Incident.objects.get(fingerprint=CAUSE), step=step)
    Incident.objects.update(failures=2, tasks=2)
    Event.objects.create(
        task=step.task,
        step=step,
        kind="retry",
        actor="“a”\n",
        detail={"n": 1.50, "x": None, "y": []},
    )
    AttemptEvidence.objects.create(step=step, number=1, traceback="“a”\n", status=500)
    Step.objects.filter(id=step.id).update(held_seconds=0.1 + 0.2, error_message="a\\b\t\u2028c")
    return made


SINCE = {"done_by", "flow"}  # columns of steps that the former release does not have
shape, write = lines.shape, lines.write


def of_the_former_release():
    now = shape()
    steps = {
        part: [name for name in getattr(now, part)[lines.STEP] if name not in SINCE]
        for part in ("columns", "texts")
    }
    return lines.Shape(
        {**now.columns, lines.STEP: steps["columns"]}, {**now.texts, lines.STEP: steps["texts"]}
    )


def written_by_the_former_release(tasks, then):
    rows = [(task, json.loads(line)) for task, line in write(tasks, then)]
    for _, content in rows:
        for step in content[lines.STEP]:
            for name in SINCE:
                del step[name]
    return [(task, json.dumps(content)) for task, content in rows]


def command(*arguments):
    out = StringIO()
    call_command("archive", *map(str, arguments), stdout=out, stderr=StringIO())
    return out.getvalue()


@pytest.mark.django_db
class TestFiles:
    def test_tasks_come_back_exactly_as_they_were(self, tmp_path, monkeypatch):
        made, before = rows(), everything()
        monkeypatch.setattr(archive, "FILE_SIZE", 7)
        total = archive.archive(tmp_path, timezone.now(), ["process_order"], print, size=7)
        assert total == 18
        assert Task.objects.count() == 2
        assert RemovedTask.objects.count() == 18
        assert violations(made) == []
        manifest = json.loads((tmp_path / MANIFEST).read_text())
        assert [file["tasks"] for file in manifest["files"]] == [7, 7, 4]
        assert sum(file["rows"]["orchestration_attempt"] for file in manifest["files"]) > 18
        assert "18 tasks" in command("--restore", tmp_path)
        assert everything() == before
        assert RemovedTask.objects.count() == 0
        assert Incident.objects.get(fingerprint=CAUSE).removed_tasks == 0
        assert violations(made) == []
        assert "0 tasks" in command("--restore", tmp_path)  # they are there

    def test_null_in_json_is_not_an_empty_column(self, tmp_path):
        rows()
        step = Step.objects.filter(task__state="processed").first()
        Step.objects.filter(id=step.id).update(request=Value(None, JSONField()))
        before = everything()
        command("--before", "2100-01-01", tmp_path)
        command("--restore", tmp_path)
        assert everything() == before

    def test_archive_without_a_table_that_came_since_comes_back(self, tmp_path, monkeypatch):
        rows()
        AttemptEvidence.objects.all().delete()
        before = everything()
        older = [table for table in lines.TABLES if table.name != "orchestration_attemptevidence"]
        with monkeypatch.context() as then:
            for module in (lines, archive):
                then.setattr(module, "TABLES", older)
            command("--before", "2100-01-01", tmp_path)
        assert "18 tasks" in command("--restore", tmp_path)
        assert everything() == before
        assert "0 tasks" in command("--restore", tmp_path)

    def test_what_a_former_release_called_skipped_comes_back_as_done_by_hand(
        self, tmp_path, monkeypatch
    ):
        made = rows()
        step = Step.objects.get(task__reference=made.orders["processed"], name="create_shipment")
        former = "process_state = 'skipped'"
        plant(f"UPDATE orchestration_step SET {former} WHERE id = %(step)s", step=step.id)
        Event.objects.create(task=step.task, step=step, kind="by_hand", actor="ann", attempt=1)
        with monkeypatch.context() as before:
            before.setattr(lines, "shape", of_the_former_release)
            before.setattr(lines, "write", written_by_the_former_release)
            command("--before", "2100-01-01", tmp_path)
        assert "18 tasks" in command("--restore", tmp_path)
        step.refresh_from_db()
        assert (step.process_state, step.done_by) == ("processed", "ann")
        assert violations(made) == []
        assert "0 tasks" in command("--restore", tmp_path)  # they are there

    def test_step_that_was_skipped_comes_back_with_its_flow(self, tmp_path):
        made = rows()
        step = Step.objects.get(task__reference=made.orders["processed"], name="send_confirmation")
        flow = {"when": {"$from": ["", "mail"]}, "refused": {"*": "pass"}}
        plant(
            "UPDATE orchestration_step SET process_state = 'skipped', flow = %(flow)s WHERE id = %(step)s",
            step=step.id, flow=json.dumps(flow),
        )  # fmt: skip
        before = everything()
        command("--before", "2100-01-01", tmp_path)
        command("--restore", tmp_path)
        assert everything() == before
        step.refresh_from_db()
        assert (step.process_state, step.done_by, step.flow) == ("skipped", "", flow)

    def test_new_rows_have_ids_beyond_those_that_came_back(self, tmp_path):
        rows()
        command("--before", "2100-01-01", tmp_path)
        command("--restore", tmp_path)
        last = Attempt.objects.latest("id").id
        step = Step.objects.filter(task__state="processing").first()
        fields = {"scheduler": "s", "dispatched_at": timezone.now(), "outcome": "done"}
        assert Attempt.objects.create(step=step, number=9, generation=1, **fields).id > last

    @pytest.mark.parametrize("damage", ["content", "gone", "manifest"])
    def test_damaged_archive_is_refused_as_a_whole(self, tmp_path, damage):
        rows()
        archive.archive(tmp_path, timezone.now(), ["process_order"], print, size=7)
        last = tmp_path / "tasks-000003.jsonl.gz"
        if damage == "content":
            last.write_bytes(last.read_bytes()[:-9] + b"123456789")
        elif damage == "gone":
            last.unlink()
        else:
            (tmp_path / MANIFEST).write_text("[]")
        with pytest.raises(CommandError):
            command("--restore", tmp_path)
        assert Task.objects.count() == 2

    def test_what_exists_otherwise_is_refused(self, tmp_path):
        rows()
        command("--before", "2100-01-01", tmp_path)
        command("--restore", tmp_path)
        Task.objects.filter(state="processed").first().steps.update(error_message="another")
        with pytest.raises(CommandError, match="differ"):
            command("--restore", tmp_path)

    def test_only_what_ended_before_of_the_workflow_goes(self, tmp_path):
        rows()
        assert "0 tasks" in command("--before", "2020-01-01", tmp_path)
        assert "0 tasks" in command("--before", "2100-01-01", "--workflow", "greet", tmp_path)
        assert "0 tasks" in command("--due", tmp_path)  # a year has not passed
        with pytest.raises(CommandError, match="no workflow"):
            command("--before", "2100-01-01", "--workflow", "great", tmp_path)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("point", ["before_removal", "before_commit", "after_commit"])
def test_killed_process_loses_no_task_and_keeps_none_twice(tmp_path, point):
    rows()
    before = everything()
    ended = subprocess.run(
        [sys.executable, "manage.py", "archive", "--before", "2100-01-01", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database_url(), "CRASH_AT": f"archive.{point}"},
        capture_output=True,
        check=False,
    )
    assert ended.returncode == -9, ended.stderr
    removed = point == "after_commit"
    assert (Task.objects.count() == 2) == removed
    command("--before", "2100-01-01", tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    assert [file["removed"] for file in manifest["files"]] == [True]
    assert Task.objects.count() == 2
    command("--restore", tmp_path)
    assert everything() == before
