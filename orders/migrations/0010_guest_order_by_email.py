"""How orders of guests are found by their address, once its owner has an account."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models.functions import Lower

UNTIL_DONE = "SET lock_timeout = 0; SET statement_timeout = 0"
AS_USUAL = "RESET lock_timeout; RESET statement_timeout"


class Migration(migrations.Migration):
    """It can be run again if it was interrupted."""

    atomic = False

    dependencies = [("orders", "0009_tax")]

    operations = [
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS guest_order_by_email", ""),
        AddIndexConcurrently(
            model_name="order",
            index=models.Index(
                Lower("email"), condition=models.Q(("customer__isnull", True)), name="guest_order_by_email"
            ),
        ),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
