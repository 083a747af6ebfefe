"""What the shop's owner sets: prices from a date on, tax, shipping and discount codes.

The tables are new; the former release writes orders and products without the new columns.
"""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Now

import orders.currency
import orders.models.pricing

CURRENCY = models.CharField(default=orders.currency.shop_currency, editable=False, max_length=3)
ID = ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"))


class Migration(migrations.Migration):

    dependencies = [("orders", "0007_paying")]

    operations = [
        migrations.CreateModel(
            name="TaxRate",
            fields=[
                ID,
                ("country", models.CharField(choices=orders.models.pricing.country_choices, max_length=2)),
                ("tax_class", models.CharField(choices=[("standard", "Standard rate"), ("reduced", "Reduced rate")], help_text="A country without a rate is delivered to without tax, as an export.", max_length=8)),
                ("percent", models.PositiveIntegerField(help_text="Part of prices, which include it.")),
            ],
            options={
                "ordering": ["country", "tax_class"],
                "constraints": [
                    models.UniqueConstraint(fields=("country", "tax_class"), name="tax_rate_once", violation_error_message="This country has a rate of this class."),
                    models.CheckConstraint(condition=models.Q(("percent__lte", 10000)), name="tax_rate_percent"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ShippingPrice",
            fields=[
                ID,
                ("country", models.CharField(blank=True, choices=orders.models.pricing.country_choices, error_messages={"unique": "This country has a price. Change that one."}, help_text="Empty: every country without a price of its own.", max_length=2, unique=True)),
                ("price", models.PositiveIntegerField(help_text="Including tax.")),
                ("free_from", models.PositiveIntegerField(blank=True, help_text="Delivery is free from this price of the goods on, less a discount. Empty: never.", null=True)),
                ("currency", CURRENCY),
            ],
            options={
                "ordering": ["country"],
                "constraints": [models.CheckConstraint(condition=models.Q(("price__lte", 99999999)), name="shipping_price_limit")],
            },
        ),
        migrations.CreateModel(
            name="DatedPrice",
            fields=[
                ID,
                ("starts_at", models.DateTimeField(help_text="Customers see the price from then on.")),
                ("price", models.PositiveIntegerField()),
                ("currency", CURRENCY),
                ("product", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="dated_prices", to="orders.product")),
            ],
            options={
                "ordering": ["-starts_at"],
                "constraints": [
                    models.UniqueConstraint(fields=("product", "starts_at"), name="dated_price_once", violation_error_message="This product has another price from the same moment on."),
                    models.CheckConstraint(condition=models.Q(("price__gte", 1), ("price__lte", 99999999)), name="dated_price_positive"),
                ],
            },
        ),
        migrations.CreateModel(
            name="DiscountCode",
            fields=[
                ID,
                ("code", models.CharField(help_text="Letters and digits; customers type it in any case.", max_length=30, unique=True)),
                ("percent", models.PositiveIntegerField(default=0, help_text="Off the price of the goods. 0: an amount instead.")),
                ("amount", models.PositiveIntegerField(default=0, help_text="Off the price of the goods. 0: a percentage instead.")),
                ("currency", CURRENCY),
                ("minimum", models.PositiveIntegerField(default=0, help_text="The least price of the goods that it is for.")),
                ("starts_at", models.DateTimeField(blank=True, help_text="Empty: at once.", null=True)),
                ("ends_at", models.DateTimeField(blank=True, help_text="Empty: never.", null=True)),
                ("most", models.PositiveIntegerField(blank=True, help_text="Empty: without a limit.", null=True, verbose_name="times in total")),
                ("most_each", models.PositiveIntegerField(blank=True, help_text="By e-mail address. Empty: without a limit.", null=True, verbose_name="times per customer")),
                ("used", models.PositiveIntegerField(default=0, editable=False, help_text="Orders placed with it, less those that were undone.")),
                ("active", models.BooleanField(default=True)),
            ],
            options={
                "ordering": ["code"],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(models.Q(("amount", 0), ("percent__gt", 0), ("percent__lt", 10000)), models.Q(("amount__gt", 0), ("amount__lte", 99999999), ("percent", 0)), _connector="OR"), name="discount_code_one_kind", violation_error_message="Enter a percentage below 100 or an amount, and not both."),
                    models.CheckConstraint(condition=models.Q(("ends_at__isnull", True), ("starts_at__isnull", True), ("ends_at__gt", models.F("starts_at")), _connector="OR"), name="discount_code_ends_later", violation_error_message="It has to end later than it starts."),
                ],
            },
        ),
        migrations.CreateModel(
            name="DiscountUse",
            fields=[
                ("order", models.UUIDField(primary_key=True, serialize=False)),
                ("customer", models.CharField(help_text="A digest of the customer's e-mail address.", max_length=64)),
                ("created_at", models.DateTimeField(db_default=Now())),
                ("code", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="uses", to="orders.discountcode")),
            ],
            options={"indexes": [models.Index(fields=["code", "customer"], name="discount_use_of_customer")]},
        ),
        migrations.AddField("order", "charges", models.JSONField(editable=False, help_text="Shipping, discount and taxes; see `orders/charges.py`. None: the lines are all.", null=True)),
        migrations.AddField("product", "tax_class", models.CharField(choices=[("standard", "Standard rate"), ("reduced", "Reduced rate"), ("zero", "No tax")], db_default="standard", default="standard", help_text="Which rate of the customer's country its price includes.", max_length=8)),
        migrations.AlterField("product", "price", models.PositiveIntegerField(help_text="Until the first of its dated prices begins.")),
    ]
