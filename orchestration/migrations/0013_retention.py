"""Retention: policies, what remains of removed tasks, and what the audit has looked at."""

import django.db.models.deletion
import simple_history.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('orchestration', '0012_submit_planned_once'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='HistoricalRetentionPolicy',
            fields=[
                ('workflow', models.CharField(db_index=True, editable=False, max_length=60)),
                ('keep_days', models.FloatField(blank=True, default=365.0, help_text="Days from a task's end to its removal, with all its history; empty: for ever.", null=True)),
                ('updated_at', models.DateTimeField(blank=True, editable=False)),
                ('history_id', models.AutoField(primary_key=True, serialize=False)),
                ('history_date', models.DateTimeField(db_index=True)),
                ('history_change_reason', models.CharField(max_length=100, null=True)),
                ('history_type', models.CharField(choices=[('+', 'Created'), ('~', 'Changed'), ('-', 'Deleted')], max_length=1)),
            ],
            options={
                'verbose_name': 'historical retention policy',
                'verbose_name_plural': 'historical retention policies',
                'ordering': ('-history_date', '-history_id'),
                'get_latest_by': ('history_date', 'history_id'),
            },
            bases=(simple_history.models.HistoricalChanges, models.Model),
        ),
        migrations.CreateModel(
            name='RemovedTask',
            fields=[
                ('key', models.UUIDField(help_text='Hash of workflow and reference.', primary_key=True, serialize=False)),
                ('content', models.UUIDField(help_text='Hash of the input.')),
                ('removed_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='RetentionPolicy',
            fields=[
                ('workflow', models.CharField(editable=False, max_length=60, primary_key=True, serialize=False)),
                ('keep_days', models.FloatField(blank=True, default=365.0, help_text="Days from a task's end to its removal, with all its history; empty: for ever.", null=True)),
                ('looked_until', models.DateTimeField(editable=False, help_text='Tasks that ended before this were looked at.', null=True)),
                ('looked_anew', models.DateTimeField(editable=False, help_text='When it last began with the oldest task again.', null=True)),
                ('more', models.BooleanField(db_default=False, default=False, editable=False, help_text='More of them are to be removed.')),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'verbose_name_plural': 'retention policies',
                'ordering': ['workflow'],
            },
        ),
        migrations.AddField(
            model_name='auditrun',
            name='since',
            field=models.DateTimeField(help_text='It looked at what changed since then; empty: at everything.', null=True),
        ),
        migrations.AddField(
            model_name='auditrun',
            name='until',
            field=models.DateTimeField(help_text='The next run by itself looks at what changed since then.', null=True),
        ),
        migrations.AddField(
            model_name='historicalsupervisorpolicy',
            name='keep_records_days',
            field=models.FloatField(blank=True, db_default=365.0, default=365.0, help_text='Days for which closed alerts, audit runs, ended holds and requests that were carried out are kept; empty: for ever.', null=True),
        ),
        migrations.AddField(
            model_name='historicalsupervisorpolicy',
            name='whole_audit_every',
            field=models.FloatField(db_default=86400.0, default=86400.0, help_text="Seconds between two audits of everything, with the partners' ledgers; 0 for none."),
        ),
        migrations.AddField(
            model_name='incident',
            name='removed_failures',
            field=models.PositiveBigIntegerField(db_default=0, default=0, help_text='Of the failures: those of tasks that were removed.'),
        ),
        migrations.AddField(
            model_name='incident',
            name='removed_tasks',
            field=models.PositiveIntegerField(db_default=0, default=0, help_text='Of the tasks: those that were removed.'),
        ),
        migrations.AddField(
            model_name='operation',
            name='removed_items',
            field=models.PositiveIntegerField(db_default=0, default=0, help_text='Of them, those that were removed with their tasks.'),
        ),
        migrations.AddField(
            model_name='supervisorpolicy',
            name='keep_records_days',
            field=models.FloatField(blank=True, db_default=365.0, default=365.0, help_text='Days for which closed alerts, audit runs, ended holds and requests that were carried out are kept; empty: for ever.', null=True),
        ),
        migrations.AddField(
            model_name='supervisorpolicy',
            name='whole_audit_every',
            field=models.FloatField(db_default=86400.0, default=86400.0, help_text="Seconds between two audits of everything, with the partners' ledgers; 0 for none."),
        ),
        migrations.AlterField(
            model_name='historicalsupervisorpolicy',
            name='audit_every',
            field=models.FloatField(default=3600.0, help_text='Seconds between two audits of what has changed since the last one; 0 for none.'),
        ),
        migrations.AlterField(
            model_name='supervisorpolicy',
            name='audit_every',
            field=models.FloatField(default=3600.0, help_text='Seconds between two audits of what has changed since the last one; 0 for none.'),
        ),
        migrations.AddConstraint(
            model_name='supervisorpolicy',
            constraint=models.CheckConstraint(condition=models.Q(('whole_audit_every__gte', 0), models.Q(('keep_records_days__isnull', True), ('keep_records_days__gte', 1), _connector='OR')), name='supervisor_policy_records', violation_error_message='Records are kept for at least a day, and audits are 0 or more seconds apart.'),
        ),
        migrations.AddField(
            model_name='historicalretentionpolicy',
            name='history_user',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddConstraint(
            model_name='retentionpolicy',
            constraint=models.CheckConstraint(condition=models.Q(('keep_days__isnull', True), models.Q(('keep_days__gte', 1), ('keep_days__lte', 36500)), _connector='OR'), name='retention_keep_days', violation_error_message='Ended tasks are kept for at least a day, as replies and requests may still come, and at most 100 years; leave it empty to keep them for ever.'),
        ),
    ]
