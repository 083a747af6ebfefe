import pytest
from django.core.management import call_command
from django.db import connection

from orchestration.models import StatusMessage


def indexes():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname FROM pg_indexes WHERE tablename = %s", [StatusMessage._meta.db_table]
        )
        return {name for (name,) in cursor.fetchall()}


@pytest.mark.django_db(transaction=True)
def test_an_upgrade_that_was_broken_off_while_it_built_indexes_can_be_run_again():
    before = indexes()
    call_command("migrate", "orchestration", "0025_effects_that_show_late", verbosity=0)
    with connection.cursor() as cursor:  # as a build leaves it that is broken off
        cursor.execute("CREATE INDEX status_due ON orchestration_statusmessage (id)")
    call_command("migrate", "orchestration", verbosity=0)
    assert indexes() == before
    assert {index.name for index in StatusMessage._meta.indexes} <= before
