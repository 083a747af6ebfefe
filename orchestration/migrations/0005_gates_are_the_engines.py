"""What people do about an agent is a hold: the gate"s own row is the engine"s."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0004_guards_of_undo")]

    operations = [
        migrations.RemoveConstraint(
            model_name="gate",
            name="gate_shut_with_reason",
        ),
        migrations.RemoveField(
            model_name="gate",
            name="open",
        ),
        migrations.RemoveField(
            model_name="gate",
            name="reason",
        ),
        migrations.RemoveField(
            model_name="historicalgate",
            name="history_user",
        ),
        migrations.DeleteModel(
            name="HistoricalGate",
        ),
    ]
