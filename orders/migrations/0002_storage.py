"""How the database stores tables of the shop."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [("orders", "0001_initial")]

    operations = [
        # Tries are counted without a wait for the disk: a crash of the database may forget the counts.
        migrations.RunSQL(
            "ALTER TABLE orders_throttle SET UNLOGGED", "ALTER TABLE orders_throttle SET LOGGED"
        )
    ]
