"""Applications' messages are at most a hundred levels deep and some megabytes long, at every door.

`api.submit` refuses the rest with a sentence. An application's own role calls functions of the database,
and what Python cannot read would stand before all other messages. Rows that are there are left alone: they
are set aside when they are met.
"""

from django.db import migrations

TABLES = {"submission": ("data",), "taskrequest": ("amendment", "note")}


def constraint(table, column):
    return f"{table}_{column}_can_be_read"


ADD = """
ALTER TABLE orchestration_{table} DROP CONSTRAINT IF EXISTS {name};
ALTER TABLE orchestration_{table} ADD CONSTRAINT {name} CHECK (
    pg_column_size({column}) <= 8388608 AND NOT jsonb_path_exists({column}, 'strict $.**{{101}}', silent => true)
) NOT VALID
"""
DROP = "ALTER TABLE orchestration_{table} DROP CONSTRAINT {name}"


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0024_undo_request_attempt")]

    operations = [
        migrations.RunSQL(
            ADD.format(table=table, column=column, name=constraint(table, column)),
            DROP.format(table=table, name=constraint(table, column)),
        )
        for table, columns in TABLES.items()
        for column in columns
    ]
