"""Bulk operations; the database refuses their illegal moves, and changes of what people did."""

import django.db.models.deletion
import orchestration.models.fields
from django.db import migrations, models

# The legal moves as of this migration; a test compares them with the model's tables.
OPERATION_MOVES = {
    "draft": ["waiting", "approval"],
    "approval": ["waiting", "aborted"],
    "waiting": ["running", "aborted"],
    "running": ["paused", "aborted", "ended"],
    "paused": ["running", "aborted", "ended"],
    "aborted": [],
    "ended": [],
}
ITEM_MOVES = {
    "waiting": ["sent", "skipped"],
    "sent": ["fixed", "again", "other", "skipped"],
    "fixed": [],
    "again": [],
    "other": [],
    "skipped": [],
}


def trigger(table: str, moves: dict[str, list[str]]) -> migrations.RunSQL:
    """Return the operation that makes `table` refuse every move that is not in `moves`."""
    name = f"{table}_moves"
    allowed = ", ".join(f"('{a}', '{b}')" for a, after in moves.items() for b in after)
    return migrations.RunSQL(
        f"""
        CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF (OLD.state, NEW.state) NOT IN ({allowed}) THEN
                RAISE EXCEPTION 'illegal move of % from % to %',
                    TG_TABLE_NAME, OLD.state, NEW.state USING ERRCODE = 'check_violation';
            END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER {name} BEFORE UPDATE OF state ON {table} FOR EACH ROW
        WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION {name}();
        """,
        f"DROP TRIGGER {name} ON {table}; DROP FUNCTION {name}();",
    )


APPEND_ONLY = """
CREATE FUNCTION orchestration_operationact_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is history: rows are only added', TG_TABLE_NAME
        USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER orchestration_operationact_append_only BEFORE UPDATE ON orchestration_operationact
FOR EACH ROW EXECUTE FUNCTION orchestration_operationact_append_only();
"""
NO_APPEND_ONLY = """
DROP TRIGGER orchestration_operationact_append_only ON orchestration_operationact;
DROP FUNCTION orchestration_operationact_append_only();
"""
HOT = """
ALTER TABLE orchestration_operationitem
    SET (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.01);
ALTER TABLE orchestration_operation SET (fillfactor = 50)
"""
NOT_HOT = """
ALTER TABLE orchestration_operationitem RESET (fillfactor, autovacuum_vacuum_scale_factor);
ALTER TABLE orchestration_operation RESET (fillfactor)
"""


class Migration(migrations.Migration):

    dependencies = [
        ('orchestration', '0005_gates_are_the_engines'),
    ]

    operations = [
        migrations.AddField(
            model_name='historicalsupervisorpolicy',
            name='approve_items',
            field=models.PositiveIntegerField(blank=True, db_default=1000, default=1000, help_text='Items above which a bulk operation needs a second person; empty: never.', null=True),
        ),
        migrations.AddField(
            model_name='historicalsupervisorpolicy',
            name='approve_sum',
            field=models.PositiveBigIntegerField(blank=True, help_text='Money above which it does, of any one currency, in minor units (cents); empty: never.', null=True),
        ),
        migrations.AddField(
            model_name='supervisorpolicy',
            name='approve_items',
            field=models.PositiveIntegerField(blank=True, db_default=1000, default=1000, help_text='Items above which a bulk operation needs a second person; empty: never.', null=True),
        ),
        migrations.AddField(
            model_name='supervisorpolicy',
            name='approve_sum',
            field=models.PositiveBigIntegerField(blank=True, help_text='Money above which it does, of any one currency, in minor units (cents); empty: never.', null=True),
        ),
        migrations.CreateModel(
            name='Operation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('act', models.CharField(choices=[('resubmit', 'Resubmit'), ('undo', 'Undo'), ('hold', 'Hold'), ('release', 'Release'), ('by_hand', 'Done by hand')], max_length=10)),
                ('state', models.CharField(choices=[('draft', 'Dry run'), ('approval', 'Awaiting approval'), ('waiting', 'Starts in a moment'), ('running', 'Running'), ('paused', 'Paused'), ('aborted', 'Aborted'), ('ended', 'Ended')], default='draft', max_length=10)),
                ('selection', models.JSONField(help_text="As given: {tasks: [id, …]}, {query: the list's address} or {incident: id}.")),
                ('sample', models.PositiveIntegerField(blank=True, help_text='Only so many of what was selected; empty: all.', null=True)),
                ('result', models.JSONField(blank=True, help_text='What steps done by hand gave.', null=True)),
                ('reason', models.CharField(blank=True, max_length=500)),
                ('rate', models.FloatField(default=20.0, help_text='Items sent per second.')),
                ('actor', models.CharField(help_text='Who asked for it.', max_length=150)),
                ('created_at', models.DateTimeField(db_default=orchestration.models.fields.DatabaseNow())),
                ('starts_at', models.DateTimeField(help_text='Until then it can be taken back whole.', null=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(help_text='When its last item had its end.', null=True)),
                ('approval', models.CharField(blank=True, help_text='Why a second person must agree, if so.', max_length=200)),
                ('approved_by', models.CharField(blank=True, max_length=150)),
                ('approved_at', models.DateTimeField(null=True)),
                ('items', models.PositiveIntegerField(default=0, help_text='Frozen, whatever became of them.')),
                ('waiting', models.PositiveIntegerField(default=0)),
                ('sent', models.PositiveIntegerField(default=0)),
                ('fixed', models.PositiveIntegerField(default=0)),
                ('again', models.PositiveIntegerField(default=0)),
                ('other', models.PositiveIntegerField(default=0)),
                ('skipped', models.PositiveIntegerField(default=0)),
                ('money', models.JSONField(default=dict, help_text='What it moves, by currency, minor units.')),
                ('tokens', models.FloatField(default=0.0, help_text='Items that the rate allows at `paced_at`.')),
                ('paced_at', models.DateTimeField(null=True)),
                ('followed', models.BigIntegerField(default=0, help_text='The last item looked at: the next look goes on from there.')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('ended_at__isnull', True), models.Q(('state', 'draft'), _negated=True)), fields=['id'], name='operation_open'), models.Index(condition=models.Q(('state', 'draft')), fields=['created_at'], name='operation_drafts')],
                'constraints': [models.CheckConstraint(condition=models.Q(('act__in', ['resubmit', 'undo', 'hold', 'release', 'by_hand'])), name='operation_act_known'), models.CheckConstraint(condition=models.Q(('state__in', ['draft', 'approval', 'waiting', 'running', 'paused', 'aborted', 'ended'])), name='operation_state_known'), models.CheckConstraint(condition=models.Q(('rate__gt', 0), ('rate__lte', 1000)), name='operation_rate', violation_error_message='The rate is more than 0 and at most 1,000 a second.'), models.CheckConstraint(condition=models.Q(('state', 'draft'), models.Q(('reason', ''), _negated=True), _connector='OR'), name='operation_with_reason'), models.CheckConstraint(condition=models.Q(('approved_by', ''), models.Q(('approved_by', models.F('actor')), _negated=True), _connector='OR'), name='operation_second_person'), models.CheckConstraint(condition=models.Q(('state__in', ['draft', 'approval', 'aborted']), ('approval', ''), models.Q(('approved_by', ''), _negated=True), _connector='OR'), name='operation_approved'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', False), ('state', 'ended')), ('state', 'aborted'), models.Q(models.Q(('state__in', ['ended', 'aborted']), _negated=True), ('ended_at__isnull', True)), _connector='OR'), name='operation_ended_when_final')],
            },
        ),
        migrations.CreateModel(
            name='OperationAct',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('what', models.CharField(help_text='Such as confirmed, approved, paused.', max_length=20)),
                ('actor', models.CharField(help_text='A user name, or an instance id.', max_length=150)),
                ('reason', models.CharField(blank=True, max_length=500)),
                ('detail', models.JSONField(db_default={}, default=dict)),
                ('at', models.DateTimeField(db_default=orchestration.models.fields.DatabaseNow())),
                ('operation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='acts', to='orchestration.operation')),
            ],
            options={
                'indexes': [models.Index(fields=['-at'], name='operation_act_recent')],
            },
        ),
        migrations.CreateModel(
            name='OperationItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempt', models.PositiveIntegerField(help_text='Of the step, as seen.', null=True)),
                ('seen', models.CharField(help_text='The state of the step or task, as seen.', max_length=10)),
                ('cause', models.CharField(blank=True, help_text='Why the step had failed.', max_length=300)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('sent', 'Under way'), ('fixed', 'Fixed'), ('again', 'Failed again, same cause'), ('other', 'Failed, another cause'), ('skipped', 'Skipped')], default='waiting', max_length=10)),
                ('reason', models.CharField(blank=True, max_length=500)),
                ('sent_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('operation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='item_set', to='orchestration.operation')),
                ('step', models.ForeignKey(help_text='Empty where the act is on the task as a whole.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='operation_items', to='orchestration.step')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='operation_items', to='orchestration.task')),
            ],
            options={
                'indexes': [models.Index(fields=['operation', 'state', 'id'], name='operation_item_by_state'), models.Index(fields=['operation', 'id'], name='operation_item_by_id')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'sent', 'fixed', 'again', 'other', 'skipped'])), name='operation_item_state_known'), models.UniqueConstraint(condition=models.Q(('state__in', ['waiting', 'sent']), ('step__isnull', False)), fields=('step',), name='operation_item_step_once_open'), models.UniqueConstraint(condition=models.Q(('state__in', ['waiting', 'sent']), ('step__isnull', True)), fields=('task',), name='operation_item_task_once_open'), models.CheckConstraint(condition=models.Q(models.Q(('state', 'skipped'), _negated=True), models.Q(('reason', ''), _negated=True), _connector='OR'), name='operation_item_skipped_why'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('state__in', ['waiting', 'sent'])), models.Q(('ended_at__isnull', False), ('state__in', ['fixed', 'again', 'other', 'skipped'])), _connector='OR'), name='operation_item_ended')],
            },
        ),
        trigger("orchestration_operation", OPERATION_MOVES),
        trigger("orchestration_operationitem", ITEM_MOVES),
        migrations.RunSQL(APPEND_ONLY, NO_APPEND_ONLY),
        migrations.RunSQL(HOT, NOT_HOT),
    ]
