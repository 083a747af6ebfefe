"""What a browser's visitor has, in a row of its own and not in the session."""

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):

    dependencies = [("orders", "0004_search")]

    operations = [
        migrations.CreateModel(
            name="Visitor",
            fields=[
                ("key", models.UUIDField(editable=False, help_text="The cookie's value.", primary_key=True, serialize=False)),
                ("content", models.JSONField(default=dict, help_text="The cart, and the ids of orders.")),
                ("changed_at", models.DateTimeField(db_default=Now())),
            ],
        ),
    ]
