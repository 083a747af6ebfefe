"""Exchanges: what customers want for what they send back, and the orders that are placed for it.

The table is new; the former release writes returns without the new column, and pays money back for all.
"""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('orders', '0017_removals'),
    ]

    operations = [
        migrations.CreateModel(
            name='Exchange',
            fields=[
                ('order', models.UUIDField(editable=False, help_text='The replacement, once it is taken.', primary_key=True, serialize=False)),
                ('amount', models.PositiveBigIntegerField(help_text='What it costs, in minor units.')),
                ('returned', models.PositiveBigIntegerField(db_default=0, default=0, help_text='Of that, what was paid back since, or stands for another replacement.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('of', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='exchange', to='orders.return')),
                ('payer', models.ForeignKey(help_text='The order that was paid: of a replacement for a replacement, the first one.', on_delete=django.db.models.deletion.CASCADE, related_name='exchanges', to='orders.order')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('returned__lte', models.F('amount'))), name='exchange_returned_part')],
            },
        ),
        migrations.RemoveConstraint(
            model_name='return',
            name='return_state_known',
        ),
        migrations.AddField(
            model_name='return',
            name='exchange_for',
            field=models.JSONField(help_text='What the customer wants for them, as it was offered; see `orders/lifecycle/exchange_offers.py`. None: money.', null=True),
        ),
        migrations.AlterField(
            model_name='return',
            name='state',
            field=models.CharField(choices=[('asked', 'Your label is being made.'), ('awaited', 'We wait for your parcel.'), ('arrived', 'Your parcel has arrived. We look at what is in it.'), ('refunded', 'Done: you get money back.'), ('replaced', 'Done: we send you something else for it.'), ('refused', 'Done: we could not pay anything back.'), ('lapsed', 'Ended: no parcel came.')], default='asked', max_length=8),
        ),
        AddConstraintNotValid('return', models.CheckConstraint(condition=models.Q(('state__in', ['asked', 'awaited', 'arrived', 'refunded', 'replaced', 'refused', 'lapsed'])), name='return_state_known')),
    ]
