"""What operators find orders by: the words of a customer's name, and a parcel's tracking number.

It can be run again if it was interrupted. Orders of before get their numbers in batches.
"""

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.operations import AddIndexConcurrently
from django.contrib.postgres.search import SearchVector
from django.db import migrations, models, transaction

UNTIL_DONE = "SET lock_timeout = 0; SET statement_timeout = 0"
AS_USUAL = "RESET lock_timeout; RESET statement_timeout"
BATCH = 5000
FILL = """
WITH batch AS (
    SELECT id, snapshot FROM orders_order WHERE id > %(past)s ORDER BY id LIMIT %(batch)s
), filled AS (
    UPDATE orders_order o SET parcel = left(found.number, 60)
    FROM batch, LATERAL (SELECT jsonb_path_query_first(batch.snapshot,
        '$.steps[*] ? (@.name == "create_shipment" && @.direction == "do").result.tracking') #>> '{}')
        AS found (number)
    WHERE o.id = batch.id AND o.parcel = '' AND found.number > ''
) SELECT max(id::text) FROM batch
"""


def fill(apps, schema_editor):
    """Copy the numbers of parcels out of the snapshots."""
    past = "00000000-0000-0000-0000-000000000000"
    while past:
        with transaction.atomic(), schema_editor.connection.cursor() as cursor:
            cursor.execute(FILL, {"past": past, "batch": BATCH})
            (past,) = cursor.fetchone()


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orders", "0003_region")]

    operations = [
        migrations.AddField(
            model_name="order",
            name="parcel",
            field=models.CharField(blank=True, db_default="", default="", editable=False, help_text="Its parcel's tracking number, once there is one.", max_length=60),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS order_by_name", ""),
        AddIndexConcurrently(
            model_name="order",
            index=GinIndex(SearchVector("name", config="simple"), fastupdate=False, name="order_by_name"),
        ),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS order_by_parcel", ""),
        AddIndexConcurrently(
            model_name="order",
            index=models.Index(condition=models.Q(("parcel__gt", "")), fields=["parcel"], name="order_by_parcel", opclasses=["varchar_pattern_ops"]),
        ),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
