from django.db import migrations


class Migration(migrations.Migration):
    """Count tries without waiting for the disk: a crash of the database may forget the counts."""

    dependencies = [("orders", "0006_stock_words")]
    operations = [
        migrations.RunSQL(
            "ALTER TABLE orders_throttle SET UNLOGGED", "ALTER TABLE orders_throttle SET LOGGED"
        )
    ]
