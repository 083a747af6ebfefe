"""The function that posts submissions keeps its plan, with any settings of its caller.

Callers behind a pooler, and those that write its SQL themselves, send no settings for plans: it was planned
for each call, which took three quarters of it.
"""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0011_usual_moves")]

    operations = [
        migrations.RunSQL(
            "ALTER FUNCTION orchestration_submit SET plan_cache_mode = force_generic_plan",
            "ALTER FUNCTION orchestration_submit RESET plan_cache_mode",
        ),
    ]
