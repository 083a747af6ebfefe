"""Money of any currency: a price is bounded by what the payment provider takes.

It can be run again if it was interrupted.
"""

from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models

import orders.currency

PRICE = models.CheckConstraint(condition=models.Q(("price__gte", 1), ("price__lte", 99999999)), name="product_price_positive", violation_error_message="A price is more than nothing.")


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orders", "0005_visitor")]

    operations = [
        migrations.AlterField("product", "currency", models.CharField(default=orders.currency.shop_currency, editable=False, max_length=3)),
        migrations.AlterField("product", "price", models.PositiveIntegerField()),
        migrations.AlterField("order", "total", models.PositiveBigIntegerField(help_text="In minor units.")),
        migrations.AlterField("orderline", "unit_price", models.PositiveIntegerField(help_text="In minor units.")),
        AddConstraintNotValid("product", PRICE),
        ValidateConstraint("product", "product_price_positive"),
        migrations.RemoveConstraint("product", "product_price"),
    ]
