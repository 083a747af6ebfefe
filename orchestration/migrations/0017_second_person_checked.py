"""The two persons of an operation have two accounts; the limit of the sum, where it was never set.

It can be run again if it was interrupted.
"""

from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models

UNTIL_DONE = "SET statement_timeout = 0"
AS_USUAL = "RESET statement_timeout"

# One row at most. A limit that an admin emptied stays empty.
SUM = """
UPDATE orchestration_supervisorpolicy SET approve_sum = 1000000
WHERE approve_sum IS NULL AND NOT EXISTS (
    SELECT FROM orchestration_historicalsupervisorpolicy WHERE approve_sum IS NOT NULL)
"""


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0016_second_person")]

    operations = [
        migrations.RunSQL(SUM, ""),
        migrations.RunSQL(
            "ALTER TABLE orchestration_operation DROP CONSTRAINT IF EXISTS operation_second_account",
            "",
        ),
        AddConstraintNotValid(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Q(approved_by_user__isnull=True)
                | models.Q(actor_user__isnull=True)
                | ~models.Q(approved_by_user=models.F("actor_user")),
                name="operation_second_account",
            ),
        ),
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        ValidateConstraint(model_name="operation", name="operation_second_account"),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
