"""The longest pause that an agent's service may ask for."""

from django.db import migrations, models

CAP = models.FloatField(
    db_default=3600.0,
    default=3600.0,
    help_text="Longest pause that the service may ask for in one go (Retry-After), in seconds.",
)


class Migration(migrations.Migration):
    dependencies = [("orchestration", "0026_application_roles")]

    operations = [
        migrations.AddField(
            model_name="historicalpolicy", name="retry_after_cap", field=CAP.clone()
        ),
        migrations.AddField(model_name="policy", name="retry_after_cap", field=CAP.clone()),
        migrations.AddConstraint(
            model_name="policy",
            constraint=models.CheckConstraint(
                condition=models.Q(("retry_after_cap__gt", 0), ("retry_after_cap__lte", 86400)),
                name="policy_retry_after_cap",
                violation_error_message="A service may ask for a pause of more than 0 seconds, and at most a day.",
            ),
        ),
    ]
