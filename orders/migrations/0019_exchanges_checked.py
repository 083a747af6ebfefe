"""Holds the returns of before against the check of 0018, without a lock that stops others."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orders", "0018_exchanges")]

    operations = [ValidateConstraint("return", "return_state_known")]
