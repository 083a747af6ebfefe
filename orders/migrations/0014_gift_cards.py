"""What is not a parcel of goods in stock: gift cards, free orders, pre-orders and goods made to order.

The tables are new; the former release writes orders and products without the new columns.
"""

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

import orders.currency


class Migration(migrations.Migration):

    dependencies = [
        ('orders', '0013_after_the_order'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='GiftCard',
            fields=[
                ('id', models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ('digest', models.CharField(help_text='Of the code, to find it by.', max_length=64, unique=True)),
                ('last4', models.CharField(max_length=4, verbose_name='code ends in')),
                ('amount', models.PositiveBigIntegerField(help_text='What it was issued with.')),
                ('balance', models.PositiveBigIntegerField(help_text='What is left to pay with.')),
                ('withdrawn', models.PositiveBigIntegerField(db_default=0, default=0, help_text='Taken back, as its price was returned to who bought it.')),
                ('void', models.BooleanField(db_default=False, default=False, help_text='The order that bought it was undone.')),
                ('currency', models.CharField(default=orders.currency.shop_currency, editable=False, max_length=3)),
                ('order', models.UUIDField(help_text='The order that bought it; empty: see the reason.', null=True)),
                ('sku', models.CharField(blank=True, db_default='', max_length=40, verbose_name='SKU')),
                ('unit', models.PositiveSmallIntegerField(db_default=1, default=1, help_text='Which one of the line of the order.')),
                ('reason', models.CharField(blank=True, db_default='', help_text='Why it was issued by hand.', max_length=200)),
                ('letter', models.UUIDField(help_text='The reference of the task that sends its code.')),
                ('unsent', models.CharField(blank=True, db_default='', editable=False, help_text="The code until the letter with it is sent; the shop's web process cannot read it.", max_length=30)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('by', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at'],
            },
        ),
        migrations.CreateModel(
            name='GiftUse',
            fields=[
                ('order', models.UUIDField(primary_key=True, serialize=False)),
                ('amount', models.PositiveBigIntegerField(help_text='What it paid of the order.')),
                ('returned', models.PositiveBigIntegerField(db_default=0, default=0, help_text='Of that, what was given back to the card.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('card', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='uses', to='orders.giftcard')),
            ],
            options={
                'ordering': ['created_at'],
            },
        ),
        migrations.RemoveConstraint(
            model_name='discountcode',
            name='discount_code_one_kind',
        ),
        migrations.AddField(
            model_name='order',
            name='handling',
            field=models.JSONField(editable=False, help_text='How it differs from a parcel of goods in stock; see `orders/handling.py`.', null=True),
        ),
        migrations.AddField(
            model_name='product',
            name='delivery',
            field=models.CharField(choices=[('parcel', 'By parcel'), ('gift_card', 'A gift card: its code comes by e-mail')], db_default='parcel', default='parcel', help_text='A gift card has the price as its value. Give it the tax class without tax: tax is due on what is bought with it.', max_length=9),
        ),
        migrations.AddField(
            model_name='product',
            name='made_within_days',
            field=models.PositiveSmallIntegerField(blank=True, help_text='It is made to order within these days. Empty: it is in stock.', null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(365)]),
        ),
        migrations.AddField(
            model_name='product',
            name='released_on',
            field=models.DateField(blank=True, help_text='It can be ordered before; orders with it wait until 9:00 of that day, and are paid then.', null=True),
        ),
        migrations.AddField(
            model_name='refund',
            name='on_card',
            field=models.PositiveBigIntegerField(db_default=0, default=0, help_text='Of the amount, what goes back to the gift card that paid.', verbose_name='on the gift card'),
        ),
        migrations.AddIndex(
            model_name='giftcard',
            index=models.Index(fields=['-created_at'], name='gift_card_newest'),
        ),
        migrations.AddIndex(
            model_name='giftcard',
            index=models.Index(condition=models.Q(('unsent', ''), _negated=True), fields=['letter'], name='gift_card_unsent'),
        ),
        migrations.AddConstraint(
            model_name='giftcard',
            constraint=models.UniqueConstraint(fields=('order', 'sku', 'unit'), name='gift_card_once'),
        ),
        migrations.AddConstraint(
            model_name='giftcard',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gte', 1), ('balance__lte', models.F('amount'))), name='gift_card_balance'),
        ),
        migrations.AddConstraint(
            model_name='giftuse',
            constraint=models.CheckConstraint(condition=models.Q(('returned__lte', models.F('amount'))), name='gift_use_returned'),
        ),
        AddConstraintNotValid('discountcode', models.CheckConstraint(condition=models.Q(models.Q(('amount', 0), ('percent__gt', 0), ('percent__lte', 10000)), models.Q(('amount__gt', 0), ('amount__lte', 99999999), ('percent', 0)), _connector='OR'), name='discount_code_one_kind', violation_error_message='Enter a percentage up to 100 or an amount, and not both.')),
        AddConstraintNotValid('product', models.CheckConstraint(condition=models.Q(('delivery', 'parcel'), models.Q(('delivery', 'gift_card'), ('made_within_days__isnull', True), ('tax_class', 'zero')), _connector='OR'), name='product_gift_card', violation_error_message='A gift card bears no tax, and is not made to order.')),
        AddConstraintNotValid('product', models.CheckConstraint(condition=models.Q(('made_within_days__isnull', True), models.Q(('made_within_days__gte', 1), ('made_within_days__lte', 365)), _connector='OR'), name='product_made_within')),
        AddConstraintNotValid('refund', models.CheckConstraint(condition=models.Q(('on_card__lte', models.F('amount'))), name='refund_on_card_part')),
    ]
