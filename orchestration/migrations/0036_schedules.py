"""Schedules: tasks of workflows that are submitted by the calendar, and how far each is."""

import django.db.models.deletion
import orchestration.models.fields
import simple_history.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('orchestration', '0035_reports_indexed'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='HistoricalSchedule',
            fields=[
                ('id', models.BigIntegerField(auto_created=True, blank=True, db_index=True, verbose_name='ID')),
                ('priority', models.SmallIntegerField(default=0, help_text='Higher goes first.')),
                ('fairness_key', models.CharField(blank=True, db_default='', default='', help_text='Within a priority, keys take turns.', max_length=100)),
                ('name', models.CharField(db_index=True, max_length=60)),
                ('workflow', models.CharField(max_length=60)),
                ('data', models.JSONField(blank=True, db_default={}, default=dict, help_text='The input of each task.')),
                ('due_field', models.CharField(blank=True, db_default='', default='', help_text='Field of the input that has the due time of each task, as clocks of its zone show it.', max_length=60)),
                ('cron', models.CharField(blank=True, db_default='', default='', help_text='Minute, hour, day of month, month, day of week: “0 2 * * *” is at 02:00 every day.', max_length=100)),
                ('zone', models.CharField(db_default='UTC', default='UTC', help_text='Time zone of the cron expression, such as Europe/Berlin.', max_length=60, verbose_name='time zone')),
                ('every', models.PositiveIntegerField(blank=True, help_text='Seconds between two due times, instead of a cron expression.', null=True)),
                ('start_at', models.DateTimeField(blank=True, help_text='The first due time, of those that recur at an interval.', null=True)),
                ('overlap', models.CharField(choices=[('skip', 'Skip it'), ('queue', 'Run it after that one; skip more'), ('allow', 'Run it as well')], db_default='skip', default='skip', help_text='What happens at a due time while the task of the one before has not ended.', max_length=10)),
                ('catch_up', models.CharField(choices=[('none', 'None'), ('one', 'The last one'), ('all', 'All, oldest first')], db_default='one', default='one', help_text='Which due times are submitted that passed while nothing could be.', max_length=10)),
                ('catch_up_within', models.FloatField(db_default=86400.0, default=86400.0, help_text='Seconds after which a due time that passed is not submitted any more.')),
                ('jitter', models.FloatField(db_default=0.0, default=0.0, help_text='Each task is submitted up to this number of seconds after its due time.')),
                ('reply_to', models.CharField(blank=True, db_default='', default='', help_text='The application that receives the status messages.', max_length=60)),
                ('paused', models.BooleanField(db_default=False, default=False, help_text='Due times that pass meanwhile are not caught up.')),
                ('updated_at', models.DateTimeField(blank=True, editable=False)),
                ('history_id', models.AutoField(primary_key=True, serialize=False)),
                ('history_date', models.DateTimeField(db_index=True)),
                ('history_change_reason', models.CharField(max_length=100, null=True)),
                ('history_type', models.CharField(choices=[('+', 'Created'), ('~', 'Changed'), ('-', 'Deleted')], max_length=1)),
                ('history_user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'historical schedule',
                'verbose_name_plural': 'historical schedules',
                'ordering': ('-history_date', '-history_id'),
                'get_latest_by': ('history_date', 'history_id'),
            },
            bases=(simple_history.models.HistoricalChanges, models.Model),
        ),
        migrations.CreateModel(
            name='Schedule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('priority', models.SmallIntegerField(default=0, help_text='Higher goes first.')),
                ('fairness_key', models.CharField(blank=True, db_default='', default='', help_text='Within a priority, keys take turns.', max_length=100)),
                ('name', models.CharField(max_length=60, unique=True)),
                ('workflow', models.CharField(max_length=60)),
                ('data', models.JSONField(blank=True, db_default={}, default=dict, help_text='The input of each task.')),
                ('due_field', models.CharField(blank=True, db_default='', default='', help_text='Field of the input that has the due time of each task, as clocks of its zone show it.', max_length=60)),
                ('cron', models.CharField(blank=True, db_default='', default='', help_text='Minute, hour, day of month, month, day of week: “0 2 * * *” is at 02:00 every day.', max_length=100)),
                ('zone', models.CharField(db_default='UTC', default='UTC', help_text='Time zone of the cron expression, such as Europe/Berlin.', max_length=60, verbose_name='time zone')),
                ('every', models.PositiveIntegerField(blank=True, help_text='Seconds between two due times, instead of a cron expression.', null=True)),
                ('start_at', models.DateTimeField(blank=True, help_text='The first due time, of those that recur at an interval.', null=True)),
                ('overlap', models.CharField(choices=[('skip', 'Skip it'), ('queue', 'Run it after that one; skip more'), ('allow', 'Run it as well')], db_default='skip', default='skip', help_text='What happens at a due time while the task of the one before has not ended.', max_length=10)),
                ('catch_up', models.CharField(choices=[('none', 'None'), ('one', 'The last one'), ('all', 'All, oldest first')], db_default='one', default='one', help_text='Which due times are submitted that passed while nothing could be.', max_length=10)),
                ('catch_up_within', models.FloatField(db_default=86400.0, default=86400.0, help_text='Seconds after which a due time that passed is not submitted any more.')),
                ('jitter', models.FloatField(db_default=0.0, default=0.0, help_text='Each task is submitted up to this number of seconds after its due time.')),
                ('reply_to', models.CharField(blank=True, db_default='', default='', help_text='The application that receives the status messages.', max_length=60)),
                ('paused', models.BooleanField(db_default=False, default=False, help_text='Due times that pass meanwhile are not caught up.')),
                ('declared', models.BooleanField(db_default=False, default=False, editable=False, help_text='The code of a workflow declares it.')),
                ('due_at', models.DateTimeField(editable=False, help_text='The next due time.', null=True)),
                ('look_at', models.DateTimeField(editable=False, help_text='When the housekeeper looks at it next.', null=True)),
                ('waiting_due', models.DateTimeField(editable=False, help_text='The due time whose task waits for the end of the last one.', null=True)),
                ('last_due', models.DateTimeField(editable=False, help_text='The due time of the last task.', null=True)),
                ('last_reference', models.CharField(blank=True, db_default='', default='', editable=False, max_length=100)),
                ('submitted', models.PositiveIntegerField(db_default=0, default=0, editable=False)),
                ('skipped', models.PositiveIntegerField(db_default=0, default=0, editable=False, help_text='Due times at which the task of the one before had not ended.')),
                ('missed', models.PositiveIntegerField(db_default=0, default=0, editable=False, help_text='Due times that passed while nothing could be submitted.')),
                ('skipped_due', models.DateTimeField(editable=False, help_text='The due time that was skipped last.', null=True)),
                ('skipped_behind', models.CharField(blank=True, db_default='', default='', editable=False, help_text='The reference of the task that had not ended then.', max_length=100)),
                ('problem', models.TextField(blank=True, db_default='', default='', editable=False, help_text='Why it cannot submit.')),
                ('failing_since', models.DateTimeField(editable=False, null=True)),
                ('tries', models.PositiveSmallIntegerField(db_default=0, default=0, editable=False, help_text='Number of failures.')),
                ('created_at', models.DateTimeField(db_default=orchestration.models.fields.DatabaseNow(), editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': ['name'],
                'indexes': [models.Index(condition=models.Q(('look_at__isnull', False)), fields=['look_at'], name='schedule_due'), models.Index(condition=models.Q(('problem', ''), _negated=True), fields=['failing_since'], name='schedule_failing')],
                'constraints': [models.CheckConstraint(condition=models.Q(('overlap__in', ['skip', 'queue', 'allow'])), name='schedule_overlap_known'), models.CheckConstraint(condition=models.Q(('catch_up__in', ['none', 'one', 'all'])), name='schedule_catch_up_known'), models.CheckConstraint(condition=models.Q(models.Q(('cron', ''), ('every__gte', 1), ('start_at__isnull', False)), models.Q(models.Q(('cron', ''), _negated=True), ('every__isnull', True), ('start_at__isnull', True)), _connector='OR'), name='schedule_one_timing', violation_error_message='Give either a cron expression, or a number of seconds and the first due time.'), models.CheckConstraint(condition=models.Q(('jitter__gte', 0), ('jitter__lte', 86400.0)), name='schedule_jitter', violation_error_message='Jitter is between 0 and 86,400 seconds.'), models.CheckConstraint(condition=models.Q(('catch_up_within__gte', 60), ('catch_up_within__lte', 2678400.0)), name='schedule_catch_up_within', violation_error_message='Due times are caught up within 60 seconds to 31 days.'), models.CheckConstraint(condition=models.Q(('catch_up', 'all'), ('overlap', 'skip'), _negated=True), name='schedule_all_may_overlap', violation_error_message='To catch up all due times, queue them or allow overlap: of skipped ones one runs.')],
            },
        ),
    ]
