from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("orchestration", "0030_cost_follows_what_is_due"),
    ]

    operations = [
        migrations.AddField(
            model_name="step",
            name="mend_since",
            field=models.DateTimeField(help_text="Until when the holds that put `mend_by` off have been counted.", null=True),
        ),
        migrations.AddField(
            model_name="step",
            name="patience",
            field=models.JSONField(help_text="Set if a refusal is waited for: {code, wait, until}. As long as it is refused with that code, it is tried again every so many seconds, under a new key, until that time.", null=True),
        ),
        migrations.AlterField(
            model_name="step",
            name="own_trouble",
            field=models.BooleanField(db_default=False, default=False, help_text="It failed before and after its service answered others, or in a way that says nothing about the service: its failures are its own."),
        ),
    ]
