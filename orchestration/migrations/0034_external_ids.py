"""What services call what they accepted is kept, and reports that name only this are requests."""

import django.db.models.deletion
from django.db import migrations, models

import orchestration.models.fields


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0033_waits_checked")]

    operations = [
        migrations.CreateModel(
            name='ExternalId',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('agent', models.CharField(max_length=60)),
                ('external_id', models.CharField(help_text='As the service knows it.', max_length=200)),
                ('attempt', models.PositiveIntegerField(help_text='The attempt that it accepted.')),
                ('accepted_at', models.DateTimeField(db_default=orchestration.models.fields.DatabaseNow())),
                ('step', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='external_ids', to='orchestration.step')),
                ('task', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='orchestration.task')),
            ],
            options={
                'indexes': [models.Index(fields=['agent', 'external_id'], name='external_id_of_agent')],
                'constraints': [models.UniqueConstraint(fields=('step', 'external_id'), name='external_id_once')],
            },
        ),
        migrations.AddField(
            model_name='taskrequest',
            name='agent',
            field=models.CharField(blank=True, db_default='', default='', help_text='Whose service reports it.', max_length=60),
        ),
        migrations.AddField(
            model_name='taskrequest',
            name='external_id',
            field=models.CharField(blank=True, db_default='', default='', help_text='What the service calls what it reports about.', max_length=200),
        ),
    ]
