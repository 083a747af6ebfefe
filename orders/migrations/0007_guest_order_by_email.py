from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models.functions import Lower


class Migration(migrations.Migration):
    atomic = False  # orders are placed while the index is made

    dependencies = [("orders", "0006_money")]

    operations = [
        AddIndexConcurrently(
            "order",
            models.Index(
                Lower("email"),
                condition=models.Q(customer__isnull=True),
                name="guest_order_by_email",
            ),
        ),
    ]
