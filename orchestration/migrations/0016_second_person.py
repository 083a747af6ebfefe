"""Who set up which account, what one person did alone within a day, and the ids of two persons."""

from django.db import migrations, models

from orchestration.models.fields import DatabaseNow

ITEMS = "Items that one person may act on alone within 24 hours; what goes beyond needs a second person. Empty for no limit."
SUM = "Sum in one currency, in minor units (cents), that one person may move alone within 24 hours. Empty for no limit."
KINDS = [
    ("created", "created"), ("password", "set its password"),
    ("email", "changed its e-mail address"), ("rights", "gave it rights"),
    ("factor", "reset its second factor"),
]  # fmt: skip
UNCONFIRMED = models.Q(confirmed_at__isnull=True)


def limits(model):
    """Return the operations that give the limits of a policy their texts, and the sum a default."""
    items = models.PositiveIntegerField(
        blank=True, db_default=1000, default=1000, help_text=ITEMS, null=True
    )
    money = models.PositiveBigIntegerField(
        blank=True, db_default=1_000_000, default=1_000_000, help_text=SUM, null=True
    )
    return [
        migrations.AlterField(model, "approve_items", items),
        migrations.AlterField(model, "approve_sum", money),
    ]


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0015_search_exports")]

    operations = [
        migrations.CreateModel(
            name="AccountTie",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("account", models.BigIntegerField(help_text="The account that was set up.")),
                ("set_up_by", models.BigIntegerField(help_text="The account that did it.")),
                ("by_superuser", models.BooleanField(help_text="A superuser did it: only these two count as one person, not all of its accounts.")),
                ("kind", models.CharField(choices=KINDS, max_length=10)),
                ("mark", models.CharField(blank=True, help_text="Hash of the password's hash, if it was set then.", max_length=64)),
                ("at", models.DateTimeField(db_default=DatabaseNow())),
                ("confirmed_at", models.DateTimeField(help_text="When a third account confirmed it.", null=True)),
                ("confirmed_by", models.BigIntegerField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(kind__in=[kind for kind, _ in KINDS]), name="account_tie_kind_known"),
                    models.CheckConstraint(condition=~models.Q(account=models.F("set_up_by")), name="account_tie_of_two"),
                    models.CheckConstraint(
                        condition=models.Q(confirmed_by__isnull=True)
                        | ~models.Q(confirmed_by=models.F("set_up_by")) & ~models.Q(confirmed_by=models.F("account")),
                        name="account_tie_confirmed_by_a_third",
                    ),
                ],
                "indexes": [
                    models.Index(fields=["account"], name="account_tie_account", condition=UNCONFIRMED),
                    models.Index(fields=["set_up_by"], name="account_tie_by", condition=UNCONFIRMED),
                ],
            },
        ),
        migrations.CreateModel(
            name="SoloAct",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("account", models.BigIntegerField(help_text="The user's id; 0 for all that is done in shells.")),
                ("items", models.PositiveIntegerField(help_text="Steps or tasks.")),
                ("money", models.JSONField(default=dict, help_text="What it moves, by currency, minor units.")),
                ("operation", models.ForeignKey(db_constraint=False, db_index=False, help_text="If it was one. Few rows are kept, so that no index is needed.", null=True, on_delete=models.CASCADE, related_name="+", to="orchestration.operation")),
                ("at", models.DateTimeField(db_default=DatabaseNow())),
            ],
            options={
                "indexes": [models.Index(fields=["account", "at"], name="solo_act_of_day")],
            },
        ),
        migrations.AddField(
            "operation", "actor_user",
            models.BigIntegerField(help_text="The id of that user; empty if it was asked for in a shell.", null=True),
        ),
        migrations.AddField(
            "operation", "approved_by_user",
            models.BigIntegerField(help_text="The id of that user.", null=True),
        ),
        migrations.AddField(
            "operationitem", "change",
            models.JSONField(help_text="How a step is resubmitted, if not as it is: {request, nothing_done}.", null=True),
        ),
        *limits("supervisorpolicy"),
        *limits("historicalsupervisorpolicy"),
    ]
