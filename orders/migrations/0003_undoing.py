from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orders", "0002_accounts"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="order", name="order_status_known"),
        migrations.AlterField(
            model_name="order",
            name="status",
            field=models.CharField(
                choices=[
                    ("received", "Received"),
                    ("confirmed", "Confirmed"),
                    ("failed", "Needs attention"),
                    ("undoing", "Being cancelled"),
                    ("undone", "Cancelled"),
                ],
                default="received",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="order",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("status__in", ["received", "confirmed", "failed", "undoing", "undone"])
                ),
                name="order_status_known",
            ),
        ),
    ]
