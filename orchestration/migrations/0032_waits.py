"""Steps may end later: a table of what is awaited, a state, and an outcome.

The constraints of states and outcomes are replaced, and what is there is checked by the next migration.
"""

from importlib import import_module

import django.db.models.deletion
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

before = import_module("orchestration.migrations.0029_done_by")
interface = import_module("orchestration.migrations.0003_interface")

STEP_MOVES = {
    "waiting": ["pending", "processing", "awaiting", "skipped", "error", "cancelled"],
    "pending": before.STEP_MOVES["pending"],
    "processing": ["processed", "awaiting", "pending", "skipped", "error", "cancelled"],
    "awaiting": ["processed", "skipped", "error", "cancelled"],
    "error": ["pending", "awaiting", "processed", "cancelled"],
    "processed": [],
    "skipped": [],
    "cancelled": ["pending"],
}
# By the pattern, what is awaited is Processing with a CompleteBy. Without an outer join rows can be locked,
# as the admin does.
STATE_STORE = """
CREATE OR REPLACE VIEW orchestration_statestore AS
SELECT s.id, t.reference AS order_id, t.workflow, s.name AS step, s.direction, s.agent,
    s.locked_by, coalesce(s.complete_by, CASE s.process_state WHEN 'awaiting' THEN (
        SELECT w.ends_by FROM orchestration_wait w WHERE w.step_id = s.id) END) AS complete_by,
    CASE s.process_state
        WHEN 'waiting' THEN 'Pending'
        WHEN 'pending' THEN 'Pending'
        WHEN 'processing' THEN 'Processing'
        WHEN 'awaiting' THEN 'Processing'
        WHEN 'error' THEN 'Error'
        ELSE 'Processed'
    END AS process_state,
    s.failure_count, s.attempt, s.process_state AS state, t.state AS task_state, s.task_id
FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
"""


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0031_step_policy")]

    operations = [
        migrations.CreateModel(
            name='Wait',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='waits', to='orchestration.task')),
                ('step', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='awaited', to='orchestration.step')),
                ('agent', models.CharField(blank=True, default='', max_length=60)),
                ('external_id', models.CharField(blank=True, default='', help_text="The service's own name of what it does.", max_length=200)),
                ('person', models.CharField(blank=True, default='', help_text='The role of who decides.', max_length=60)),
                ('signal', models.CharField(blank=True, default='', max_length=60)),
                ('awaited_at', models.DateTimeField(help_text='Since when; empty: its result came before.', null=True)),
                ('ends_by', models.DateTimeField(help_text='By when the result has to be there.', null=True)),
                ('fixed', models.BooleanField(db_default=False, default=False, help_text='`ends_by` is a time of the calendar, no duration.')),
                ('due_at', models.DateTimeField(help_text='The next reminder, or `ends_by`.', null=True)),
                ('look', models.FloatField(help_text='Seconds between two questions to the service; 0: only at the end.', null=True)),
                ('look_at', models.DateTimeField(help_text='When the service is asked next.', null=True)),
                ('asked_at', models.DateTimeField(help_text='Of a question without an answer yet.', null=True)),
                ('looks', models.PositiveIntegerField(db_default=0, default=0, help_text='How often it was asked.')),
                ('asked_last', models.BooleanField(db_default=False, default=False, help_text='Its time is over: it was asked once more.')),
                ('reminded', models.PositiveSmallIntegerField(db_default=0, default=0)),
                ('report', models.JSONField(help_text='What came before it was awaited: {id, outcome, result, code, message, actor}.', null=True)),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('due_at__isnull', False)), fields=['due_at'], name='wait_due'),
                    models.Index(condition=models.Q(('look_at__isnull', False)), fields=['agent', 'look_at'], name='wait_look'),
                    models.Index(condition=models.Q(('asked_at__isnull', False)), fields=['agent', 'asked_at'], name='wait_asked'),
                    models.Index(condition=models.Q(('person', ''), _negated=True), fields=['person', 'ends_by'], name='wait_person'),
                    models.Index(condition=models.Q(('awaited_at__isnull', False), ('report__isnull', False)), fields=['step'], name='wait_reported'),
                    models.Index(condition=models.Q(('external_id', ''), _negated=True), fields=['agent', 'external_id'], name='wait_external'),
                ],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('awaited_at__isnull', True), models.Q(('due_at__isnull', False), ('ends_by__isnull', False)), _connector='OR'), name='wait_ends'),
                ],
            },
        ),
        migrations.RemoveConstraint(
            model_name='attempt',
            name='attempt_outcome_known',
        ),
        migrations.RemoveConstraint(
            model_name='step',
            name='step_state_known',
        ),
        migrations.AlterField(
            model_name='attempt',
            name='outcome',
            field=models.CharField(choices=[('done', 'Done'), ('transient', 'Transient'), ('rejected', 'Rejected'), ('unknown', 'Unknown'), ('expired', 'Expired'), ('absent', 'Absent'), ('later', 'Later')], max_length=10),
        ),
        migrations.AlterField(
            model_name='step',
            name='outcome',
            field=models.CharField(blank=True, choices=[('done', 'Done'), ('transient', 'Transient'), ('rejected', 'Rejected'), ('unknown', 'Unknown'), ('expired', 'Expired'), ('absent', 'Absent'), ('later', 'Later')], help_text='Of the last attempt.', max_length=10),
        ),
        migrations.AlterField(
            model_name='step',
            name='process_state',
            field=models.CharField(choices=[('waiting', 'Waiting'), ('pending', 'Pending'), ('processing', 'Processing'), ('awaiting', 'Awaiting'), ('processed', 'Processed'), ('error', 'Error'), ('skipped', 'Skipped'), ('cancelled', 'Cancelled')], default='waiting', max_length=10),
        ),
        AddConstraintNotValid(
            model_name='attempt',
            constraint=models.CheckConstraint(condition=models.Q(('outcome__in', ['done', 'transient', 'rejected', 'unknown', 'expired', 'absent', 'later'])), name='attempt_outcome_known'),
        ),
        AddConstraintNotValid(
            model_name='step',
            constraint=models.CheckConstraint(condition=models.Q(('process_state__in', ['waiting', 'pending', 'processing', 'awaiting', 'processed', 'error', 'skipped', 'cancelled'])), name='step_state_known'),
        ),
        migrations.AlterField(
            model_name='event',
            name='kind',
            field=models.CharField(choices=[('retry', 'Retry scheduled'), ('error', 'Stopped in error'), ('resubmitted', 'Resubmitted'), ('refused', 'Late or repeated reply refused'), ('late', 'Late effect detected'), ('overdue', 'Overdue'), ('excused', 'Failed while the breaker was open: not counted'), ('waits', 'Extended wait started'), ('by_hand', 'Done by hand'), ('reported', 'Result reported'), ('undo', 'Undo requested'), ('undo_asked', 'Undo requested by the supervisor'), ('no_undo', 'Undo refused'), ('settled', 'Confirmed that nothing was done'), ('held', 'Held'), ('released', 'Released'), ('priority', 'Priority changed'), ('probe', 'Immediate probe requested'), ('acknowledged', 'Alert acknowledged'), ('bulk', 'Bulk operation changed'), ('incident', 'Incident changed'), ('cause', 'Incident changed automatically'), ('retried', 'Dead letter retried'), ('closed', 'Dead letter or alert closed'), ('started', 'Started by hand')], max_length=12),
        ),
        migrations.AlterField(
            model_name='statusmessage',
            name='kind',
            field=models.CharField(choices=[('received', 'Request received'), ('completed', 'Completed'), ('step', 'Step changed (only for applications that ask for it)'), ('action_needed', 'Rejected: the input must be changed'), ('failed', 'Failed: an operator was alerted'), ('resumed', 'Resumed after a failure'), ('undoing', 'Being undone'), ('undone', 'Undone: no effect is left'), ('refused', 'A request about it was refused'), ('reminder', 'A result is awaited still'), ('set_aside', 'Not accepted: waiting for an operator'), ('closed', 'Not taken: an operator decided so')], max_length=20),
        ),
        migrations.AlterField(
            model_name='taskrequest',
            name='what',
            field=models.CharField(choices=[('undo', 'Undo the task'), ('resubmit', 'Retry a failed step'), ('complete', 'Report the result of a step that awaits it')], max_length=10),
        ),
        migrations.RunSQL(before.only_moves(STEP_MOVES), before.only_moves(before.STEP_MOVES)),
        migrations.RunSQL(
            STATE_STORE, interface.STATE_STORE.replace("CREATE VIEW", "CREATE OR REPLACE VIEW")
        ),
    ]
