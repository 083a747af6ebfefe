"""What people take out of the dashboard as a file: who, what and how much."""

from django.db import migrations, models

from orchestration.models.fields import DatabaseNow


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0014_old_records")]

    operations = [
        migrations.CreateModel(
            name="Export",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("actor", models.CharField(max_length=150)),
                ("what", models.CharField(help_text="Which list.", max_length=20)),
                ("query", models.TextField(blank=True, help_text="What it was narrowed to.")),
                ("format", models.CharField(choices=[("csv", "CSV"), ("json", "JSON")], max_length=4)),
                ("columns", models.TextField(help_text="The columns, parted by commas.")),
                ("personal", models.BooleanField(help_text="Whether personal data were included.")),
                ("rows", models.PositiveIntegerField(help_text="How many were found when it began.")),
                ("at", models.DateTimeField(db_default=DatabaseNow())),
            ],
            options={"indexes": [models.Index(fields=["-at", "-id"], name="export_recent")]},
        ),
        # as of the history: rows are only added
        migrations.RunSQL(
            """
            CREATE FUNCTION orchestration_export_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                RAISE EXCEPTION '% is history: rows are only added', TG_TABLE_NAME
                    USING ERRCODE = 'check_violation';
            END $$;
            CREATE TRIGGER orchestration_export_append_only BEFORE UPDATE ON orchestration_export
            FOR EACH ROW EXECUTE FUNCTION orchestration_export_append_only();
            """,
            "DROP FUNCTION orchestration_export_append_only() CASCADE",
        ),
    ]
