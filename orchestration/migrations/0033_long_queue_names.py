from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orchestration", "0027_times_to_be_moved")]

    # a queue is called after an application, whose name may have 60 characters by itself
    operations = [
        migrations.AlterField("worker", "queue", models.CharField(max_length=100)),
    ]
