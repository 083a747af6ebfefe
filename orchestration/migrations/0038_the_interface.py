"""Keepers on the rows, progress in messages to them, and requests of applications.

While processes of the release before still write, triggers add what these do not know: the keeper of
a task, and what a status message is about. Columns get constant defaults, so no table is rewritten.
"""

import django.db.models.deletion
from django.db import migrations, models

import orchestration.models.fields
from orchestration import registry

KEEPER = """
CREATE FUNCTION orchestration_keeper_of_old() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.keeper := CASE NEW.workflow {cases} ELSE '' END;
    RETURN NEW;
END $$;
CREATE TRIGGER keeper_of_old BEFORE INSERT ON orchestration_task
    FOR EACH ROW WHEN (NEW.keeper IS NULL) EXECUTE FUNCTION orchestration_keeper_of_old();
"""
STATUS = """
CREATE FUNCTION orchestration_status_of_old() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE t record;
BEGIN
    SELECT workflow, reference, reply_to, keeper, keeper_lead INTO t
    FROM orchestration_task WHERE id = NEW.task_id;
    NEW.workflow := t.workflow;
    NEW.reference := t.reference;
    IF NEW.reply_to = t.keeper AND NEW.reply_to <> t.reply_to THEN
        NEW.number := NEW.number + t.keeper_lead;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER status_of_old BEFORE INSERT ON orchestration_statusmessage
    FOR EACH ROW WHEN (NEW.workflow = '' AND NEW.task_id IS NOT NULL)
    EXECUTE FUNCTION orchestration_status_of_old();
"""
DROP = """
DROP TRIGGER IF EXISTS keeper_of_old ON orchestration_task;
DROP FUNCTION IF EXISTS orchestration_keeper_of_old();
"""
DROP_STATUS = """
DROP TRIGGER IF EXISTS status_of_old ON orchestration_statusmessage;
DROP FUNCTION IF EXISTS orchestration_status_of_old();
"""


def keepers():
    """Return the keeper of each workflow that has one."""
    return {one.name: one.keeper for one in registry.workflows.values() if one.keeper}


def fill_in_for_old(_, schema_editor):
    """Have inserts by the release before fill in the keeper of a task."""
    quote = schema_editor.quote_value
    cases = " ".join(
        f"WHEN {quote(name)} THEN {quote(keeper)}" for name, keeper in sorted(keepers().items())
    )
    if not cases:
        cases = "WHEN '' THEN ''"
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(DROP + KEEPER.format(cases=cases))


class Migration(migrations.Migration):
    dependencies = [("orchestration", "0037_the_state_store_by_its_names")]

    operations = [
        migrations.AddField(
            model_name="statusmessage",
            name="progress",
            field=models.JSONField(help_text="Where the task stands.", null=True),
        ),
        migrations.AddField(
            model_name="statusmessage",
            name="reference",
            field=models.CharField(db_default="", default="", max_length=100),
        ),
        migrations.AddField(
            model_name="statusmessage",
            name="workflow",
            field=models.CharField(db_default="", default="", max_length=60),
        ),
        migrations.AddField(
            model_name="task",
            name="keeper",
            field=models.CharField(
                blank=True,
                default="",
                help_text="The application that keeps what was recorded with it, and follows all of it.",
                max_length=60,
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="keeper_lead",
            field=models.IntegerField(
                db_default=0,
                default=0,
                help_text="How many more messages its keeper has than the application that submitted it.",
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="told",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The version of its progress that its keeper has.",
                max_length=32,
            ),
        ),
        migrations.AlterField(
            model_name="statusmessage",
            name="kind",
            field=models.CharField(
                choices=[
                    ("received", "Request received"),
                    ("completed", "Completed"),
                    (
                        "step",
                        "A step has changed (only for its keeper, and for those who want to know)",
                    ),
                    ("action_needed", "Rejected: it needs another input"),
                    ("failed", "Failed: an operator was alerted"),
                    ("resumed", "Resumed after a failure"),
                    ("undoing", "Being undone"),
                    ("undone", "Undone: no effect is left"),
                    ("refused", "A request about it was refused"),
                    ("set_aside", "Not taken yet: an operator decides"),
                    ("closed", "Not taken: an operator decided so"),
                ],
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="statusmessage",
            name="task",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="status_messages",
                to="orchestration.task",
            ),
        ),
        migrations.CreateModel(
            name="TaskRequest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "request",
                    models.UUIDField(help_text="The application's own id for it.", unique=True),
                ),
                ("workflow", models.CharField(max_length=60)),
                ("reference", models.CharField(max_length=100)),
                (
                    "what",
                    models.CharField(
                        choices=[
                            ("undo", "Undo the task"),
                            ("resubmit", "Try a failed step again"),
                        ],
                        max_length=10,
                    ),
                ),
                ("step", models.CharField(blank=True, default="", max_length=60)),
                (
                    "attempt",
                    models.PositiveIntegerField(
                        default=0, help_text="The one that was seen to fail."
                    ),
                ),
                ("amendment", models.JSONField(default=dict, help_text="What changes with it.")),
                (
                    "note",
                    models.JSONField(
                        help_text="For the application, when it is carried out.", null=True
                    ),
                ),
                ("actor", models.CharField(max_length=150)),
                ("because", models.TextField(help_text="Why it is asked for.")),
                ("reply_to", models.CharField(blank=True, max_length=60)),
                (
                    "created_at",
                    models.DateTimeField(db_default=orchestration.models.fields.DatabaseNow()),
                ),
                (
                    "tries",
                    models.PositiveSmallIntegerField(
                        db_default=0, default=0, help_text="How often it has failed."
                    ),
                ),
                ("retry_at", models.DateTimeField(help_text="When it is tried again.", null=True)),
                ("refused_at", models.DateTimeField(help_text="When it was set aside.", null=True)),
                (
                    "closed_at",
                    models.DateTimeField(
                        help_text="When an operator decided that it is not carried out.", null=True
                    ),
                ),
                (
                    "problem",
                    models.CharField(
                        blank=True,
                        choices=[
                            (
                                "failing",
                                "An error: of the database, or in the code of its application",
                            ),
                            (
                                "unknown",
                                "Its workflow is unknown: a worker of another release may know it",
                            ),
                        ],
                        db_default="",
                        default="",
                        max_length=10,
                    ),
                ),
                ("reason", models.TextField(blank=True, db_default="", default="")),
                (
                    "done_at",
                    models.DateTimeField(
                        help_text="When it was carried out, or refused.", null=True
                    ),
                ),
                ("refusal", models.CharField(blank=True, db_default="", default="", max_length=40)),
            ],
            options={
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("retry_at"), nulls_first=True),
                        models.F("id"),
                        condition=models.Q(("done_at__isnull", True), ("refused_at__isnull", True)),
                        name="request_due",
                    ),
                    models.Index(
                        condition=models.Q(("done_at__isnull", True), ("refused_at__isnull", True)),
                        fields=["workflow", "reference", "id"],
                        name="request_line",
                    ),
                    models.Index(
                        condition=models.Q(
                            models.Q(
                                ("refused_at__isnull", False),
                                models.Q(("problem", ""), _negated=True),
                                _connector="OR",
                            ),
                            ("closed_at__isnull", True),
                        ),
                        fields=["id"],
                        name="request_aside",
                    ),
                    models.Index(
                        condition=models.Q(
                            models.Q(
                                ("refused_at__isnull", False),
                                models.Q(("problem", ""), _negated=True),
                                _connector="OR",
                            ),
                            ("closed_at__isnull", True),
                        ),
                        fields=["workflow", "problem", "tries"],
                        name="request_suffering",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="submission",
            name="keeper",
            field=models.CharField(blank=True, db_default="", default="", max_length=60),
        ),
        migrations.RunPython(fill_in_for_old, lambda *_: None),
        migrations.RunSQL(migrations.RunSQL.noop, DROP),
        migrations.RunSQL(DROP_STATUS + STATUS, DROP_STATUS),
    ]
