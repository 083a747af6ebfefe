
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('orchestration', '0042_undone_in_part'),
    ]

    operations = [
        migrations.AlterField(
            model_name='operation',
            name='preview',
            field=models.JSONField(db_default={}, default=dict, help_text='The dry run: {eligible, skipped by reason, calls, money, forced, standing, followed}.'),
        ),
    ]
