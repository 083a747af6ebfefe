import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

pytestmark = pytest.mark.django_db


def test_migrate_changes_nothing_after_replaced_migrations():
    recorder = MigrationRecorder(connection)
    recorder.record_applied("orchestration", "0003_trouble")
    recorder.record_unapplied("sessions", "0001_initial")  # what there is to do
    before = set(recorder.applied_migrations())
    with pytest.raises(CommandError, match=r"It cannot be upgraded.*`make clean`"):
        call_command("migrate", verbosity=0)
    assert set(recorder.applied_migrations()) == before
