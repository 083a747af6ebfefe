"""A queue is called after an application, whose name may have 60 characters by itself."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Widen a column; no row is written anew."""

    dependencies = [("orchestration", "0032_lines_by_turn")]

    operations = [
        migrations.AlterField("worker", "queue", models.CharField(max_length=100)),
    ]
