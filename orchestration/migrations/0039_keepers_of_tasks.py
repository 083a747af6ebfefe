"""Tasks that there are get their keepers, and status messages what they are about: in batches."""

from importlib import import_module

from django.db import migrations

keepers = import_module("orchestration.migrations.0038_the_interface").keepers

KEPT = """
WITH next AS (
    SELECT id FROM orchestration_task WHERE id > %(beyond)s ORDER BY id LIMIT 5000
), kept AS (
    UPDATE orchestration_task t SET keeper = k.keeper
    FROM unnest(%(workflows)s::text[], %(keepers)s::text[]) AS k (workflow, keeper)
    WHERE t.id IN (SELECT id FROM next) AND t.workflow = k.workflow AND t.keeper = ''
)
SELECT id FROM next ORDER BY id DESC LIMIT 1
"""
NAMED = """
UPDATE orchestration_statusmessage m SET workflow = t.workflow, reference = t.reference
FROM orchestration_task t WHERE t.id = m.task_id AND m.workflow = ''
"""


def write_keepers(_, schema_editor):
    """Write the keepers of tasks that there are, in batches, each in its own transaction."""
    kept = keepers()
    values = {
        "workflows": list(kept),
        "keepers": list(kept.values()),
        "beyond": "00000000-0000-0000-0000-000000000000",
    }
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(NAMED)
        while kept:
            cursor.execute(KEPT, values)
            rows = cursor.fetchall()
            if not rows:
                break
            values["beyond"] = rows[0][0]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("orchestration", "0038_the_interface")]

    operations = [migrations.RunPython(write_keepers, migrations.RunPython.noop)]
