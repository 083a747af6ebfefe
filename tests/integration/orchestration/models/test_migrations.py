from importlib import import_module

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from orchestration.models import Event, Step
from tests.support.engine import new_task, step_of, without_triggers

done_by = import_module("orchestration.migrations.0029_done_by")

pytestmark = pytest.mark.django_db


def test_what_was_done_by_hand_before_is_processed_and_says_by_whom():
    known, unknown = step_of(new_task()), step_of(new_task())
    for actor in ("ann", "bob"):
        Event.objects.create(task_id=known.task_id, step=known, kind="by_hand", actor=actor)
    with without_triggers():
        steps = Step.objects.filter(id__in=[known.id, unknown.id])
        steps.update(process_state="skipped", result={}, pending_since=None)
        with connection.schema_editor() as editor:
            done_by.convert(None, editor)
    assert set(steps.values_list("id", "process_state", "done_by")) == {
        (known.id, "processed", "bob"), (unknown.id, "processed", "?"),
    }  # fmt: skip


def test_migrate_changes_nothing_after_replaced_migrations():
    recorder = MigrationRecorder(connection)
    recorder.record_applied("orchestration", "0003_trouble")
    recorder.record_unapplied("sessions", "0001_initial")  # what there is to do
    before = set(recorder.applied_migrations())
    with pytest.raises(CommandError, match=r"It cannot be upgraded.*`make clean`"):
        call_command("migrate", verbosity=0)
    assert set(recorder.applied_migrations()) == before
