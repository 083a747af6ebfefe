"""Holds the rows of before against the checks of 0012, without a lock that stops others."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orders", "0014_gift_cards")]

    operations = [
        ValidateConstraint("discountcode", "discount_code_one_kind"),
        ValidateConstraint("product", "product_gift_card"),
        ValidateConstraint("product", "product_made_within"),
        ValidateConstraint("refund", "refund_on_card_part"),
    ]
