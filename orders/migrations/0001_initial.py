"""The tables of the shop's models with their indexes and constraints, as `makemigrations` writes them."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Profile',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, serialize=False, to=settings.AUTH_USER_MODEL)),
                ('name', models.CharField(max_length=100)),
                ('street', models.CharField(max_length=120)),
                ('postcode', models.CharField(max_length=20)),
                ('city', models.CharField(max_length=80)),
                ('country', models.CharField(max_length=2)),
            ],
        ),
        migrations.CreateModel(
            name='Throttle',
            fields=[
                ('key', models.CharField(help_text='The kind of try and a hash of its origin.', max_length=100, primary_key=True, serialize=False)),
                ('count', models.PositiveIntegerField()),
                ('until', models.DateTimeField(db_index=True, help_text='When the count is reset.')),
            ],
        ),
        migrations.CreateModel(
            name='Order',
            fields=[
                ('id', models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ('number', models.CharField(help_text='The id, short enough to read out.', max_length=20)),
                ('email', models.EmailField(max_length=254)),
                ('name', models.CharField(max_length=100)),
                ('street', models.CharField(max_length=120)),
                ('postcode', models.CharField(max_length=20)),
                ('city', models.CharField(max_length=80)),
                ('country', models.CharField(max_length=2)),
                ('total', models.PositiveBigIntegerField(help_text='In cents.')),
                ('currency', models.CharField(max_length=3)),
                ('payment_method', models.CharField(choices=[('pm_card_visa', 'Visa ending in 4242'), ('pm_card_visa_chargeDeclined', 'Visa that the bank declines'), ('pm_card_visa_chargeDeclinedInsufficientFunds', 'Visa without sufficient funds'), ('pm_card_sandbox_timeoutTwice', 'Visa of a bank that answers only the third time'), ('pm_card_sandbox_replyLost', "Visa whose bank's first answer gets lost")], max_length=80)),
                ('status', models.CharField(choices=[('received', 'Received'), ('confirmed', 'Confirmed'), ('failed', 'Needs attention'), ('undoing', 'Being cancelled'), ('undone', 'Cancelled')], default='received', max_length=10)),
                ('status_number', models.PositiveIntegerField(default=0, help_text='Of the last status message applied; older ones change nothing.')),
                ('snapshot', models.JSONField(editable=False, help_text='Progress of its task by the last status message.', null=True)),
                ('asked', models.JSONField(editable=False, help_text='The last request to change it; see `orders/lifecycle/requests.py`.', null=True)),
                ('fingerprint', models.CharField(help_text="Of its task's input.", max_length=64)),
                ('language', models.CharField(db_default='en', default='en', help_text='The language of e-mails to its customer.', max_length=5)),
                ('waits_until', models.DateTimeField(help_text='Until when its customer waits for goods that are sold out.', null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('customer', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='orders', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at'],
            },
        ),
        migrations.CreateModel(
            name='OrderLine',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sku', models.CharField(max_length=40, verbose_name='SKU')),
                ('name', models.CharField(max_length=120)),
                ('unit_price', models.PositiveIntegerField(help_text='In cents.')),
                ('quantity', models.PositiveSmallIntegerField()),
                ('order', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='lines', to='orders.order')),
            ],
        ),
        migrations.CreateModel(
            name='Placement',
            fields=[
                ('order', models.UUIDField(help_text="The order's id, made by the checkout.", primary_key=True, serialize=False)),
                ('fingerprint', models.CharField(help_text='Of the placed content: the same token with other content is refused.', max_length=64)),
                ('application', models.CharField(blank=True, db_default='', help_text='The application that placed it by the API, if any.', max_length=60)),
                ('offer', models.JSONField(help_text='The lines, total and currency promised to an application.', null=True)),
                ('aside', models.CharField(blank=True, choices=[('refused', 'Set aside: staff decide'), ('closed', 'Not processed')], db_default='', help_text='Why it did not become an order, by the last status message about it.', max_length=7)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('customer', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='placements', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Product',
            fields=[
                ('sku', models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name='SKU')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('name', models.CharField(max_length=120)),
                ('kind', models.CharField(help_text='The shelf it is on: Coffee, Tea, …', max_length=40)),
                ('summary', models.CharField(help_text='One line, for the grid.', max_length=160)),
                ('description', models.TextField()),
                ('price', models.PositiveIntegerField(help_text='In cents.')),
                ('currency', models.CharField(default='EUR', editable=False, max_length=3)),
                ('picture', models.CharField(help_text='The name of an SVG in static/products/, without its extension.', max_length=80)),
                ('position', models.PositiveIntegerField(default=0, help_text='Lower comes first.')),
                ('active', models.BooleanField(default=True, help_text='Only active products can be bought.')),
                ('stock', models.CharField(choices=[('plenty', 'In stock'), ('few', 'Only a few left'), ('none', 'Sold out')], db_default='plenty', default='plenty', help_text='Shown to customers. A product that is sold out is listed and cannot be bought.', max_length=6)),
            ],
            options={
                'ordering': ['position', 'name'],
                'constraints': [models.CheckConstraint(condition=models.Q(('price__gte', 1), ('price__lte', 1000000)), name='product_price', violation_error_message='A price is between 1 cent and 10,000.00.'), models.CheckConstraint(condition=models.Q(('stock__in', ['plenty', 'few', 'none'])), name='product_stock_known')],
            },
        ),
        migrations.AddIndex(
            model_name='order',
            index=models.Index(fields=['-created_at'], name='order_newest'),
        ),
        migrations.AddIndex(
            model_name='order',
            index=models.Index(fields=['number'], name='order_by_number'),
        ),
        migrations.AddIndex(
            model_name='order',
            index=models.Index(condition=models.Q(('customer__isnull', False)), fields=['customer', '-created_at', '-id'], name='order_of_customer'),
        ),
        migrations.AddConstraint(
            model_name='order',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['received', 'confirmed', 'failed', 'undoing', 'undone'])), name='order_status_known'),
        ),
        migrations.AddConstraint(
            model_name='orderline',
            constraint=models.UniqueConstraint(fields=('order', 'sku'), name='order_line_once'),
        ),
        migrations.AddConstraint(
            model_name='orderline',
            constraint=models.CheckConstraint(condition=models.Q(('quantity__gte', 1), ('quantity__lte', 99)), name='order_line_quantity'),
        ),
        migrations.AddIndex(
            model_name='placement',
            index=models.Index(condition=models.Q(('customer__isnull', False)), fields=['customer', '-created_at'], name='placement_of_customer'),
        ),
        migrations.AddIndex(
            model_name='placement',
            index=models.Index(condition=models.Q(('application', ''), _negated=True), fields=['application', '-created_at', '-order'], name='placement_of_application'),
        ),
    ]
