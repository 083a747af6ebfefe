"""What a browser's visitor has, in a row of its own; and accounts by name, in any case.

It can be run again if it was interrupted.
"""

from django.db import migrations, models
from django.db.models.functions import Now

UNTIL_DONE = "SET lock_timeout = 0; SET statement_timeout = 0"
AS_USUAL = "RESET lock_timeout; RESET statement_timeout"
NO_INDEX = "DROP INDEX CONCURRENTLY IF EXISTS user_by_name"
INDEX = "CREATE INDEX CONCURRENTLY user_by_name ON auth_user (upper(username))"


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orders", "0004_search"), ("auth", "0012_alter_user_first_name_max_length")]

    operations = [
        migrations.CreateModel(
            name="Visitor",
            fields=[
                ("key", models.UUIDField(editable=False, help_text="The cookie's value.", primary_key=True, serialize=False)),
                ("content", models.JSONField(default=dict, help_text="The cart, and the ids of orders.")),
                ("changed_at", models.DateTimeField(db_default=Now(), db_index=True)),
            ],
        ),
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        migrations.RunSQL(NO_INDEX, ""),
        migrations.RunSQL(INDEX, NO_INDEX),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
