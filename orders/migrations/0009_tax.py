"""The tax rates of the countries with delivery, and a check of products' classes.

It can be run again if it was interrupted; rates that are there stay as they are.
"""

from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models

# Standard rates, and of the reduced ones that of most food, in hundredths of a percent, as of November 2026.
# A beginning: which goods have which rate is each country's law, and the shop's owner enters that in the
# admin. Denmark has one rate. Ireland taxes most food, tea and coffee among it, at 0; Sweden at 6 % from April
# 2026 to December 2027. Switzerland is not in the Union: what is sent there is an export, without tax.
RATES = {
    "AT": (20_00, 10_00),
    "BE": (21_00, 6_00),
    "DE": (19_00, 7_00),
    "DK": (25_00, 25_00),
    "ES": (21_00, 10_00),
    "FI": (25_50, 13_50),
    "FR": (20_00, 5_50),
    "IE": (23_00, 0),
    "IT": (22_00, 10_00),
    "LU": (17_00, 3_00),
    "NL": (21_00, 9_00),
    "PL": (23_00, 5_00),
    "PT": (23_00, 6_00),
    "SE": (25_00, 6_00),
}
KNOWN = models.CheckConstraint(condition=models.Q(("tax_class__in", ["standard", "reduced", "zero"])), name="product_tax_class_known")


def fill(apps, schema_editor):
    """Add the rates that are missing."""
    rate = apps.get_model("orders", "TaxRate")
    rate.objects.bulk_create(
        (
            rate(country=country, tax_class=tax_class, percent=percent)
            for country, percents in RATES.items()
            for tax_class, percent in zip(("standard", "reduced"), percents, strict=True)
        ),
        ignore_conflicts=True,
    )


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orders", "0008_prices")]

    operations = [
        AddConstraintNotValid("product", KNOWN),
        ValidateConstraint("product", "product_tax_class_known"),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
