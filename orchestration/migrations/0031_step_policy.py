"""Thresholds of one step, each empty for "as its agent's policy says".

Code of the release before reads none: until it no longer runs, steps that it decides about are as their agents'
policies say.
"""

import django.db.models.deletion
import simple_history.models
from django.conf import settings
from django.db import migrations, models


def own() -> list[tuple[str, models.Field]]:
    """Return the columns that the table and its history have."""
    nothing = {"blank": True, "default": None, "null": True}
    return [
        (
            "failure_threshold",
            models.PositiveSmallIntegerField(
                help_text="Failed attempts after which the step is in error and an alert is raised.", **nothing
            ),
        ),
        (
            "past_threshold",
            models.CharField(
                choices=[
                    ("error", "Error: an operator decides"),
                    ("wait", "Wait for an extended time, then retry"),
                    ("undo", "Undo the task"),
                ],
                help_text="What happens when the threshold is reached.",
                max_length=10,
                **nothing,
            ),
        ),
        ("extended_wait", models.FloatField(help_text="Length of the extended wait, in seconds.", **nothing)),
        (
            "max_extended_waits",
            models.PositiveSmallIntegerField(
                help_text="Number of extended waits before the step is in error.", **nothing
            ),
        ),
        (
            "on_rejection",
            models.CharField(
                choices=[
                    ("error", "Error: an operator decides"),
                    ("wait", "Wait for a fix, then undo the task"),
                    ("undo", "Undo the task"),
                ],
                help_text="What happens when the service rejects the request.",
                max_length=10,
                **nothing,
            ),
        ),
        (
            "resolve_within",
            models.FloatField(
                help_text="Seconds that a rejected step waits for a fix before its task is undone.", **nothing
            ),
        ),
        (
            "undo_threshold",
            models.PositiveSmallIntegerField(
                help_text="Failed attempts after which an undo step is in error.", **nothing
            ),
        ),
    ]


class Migration(migrations.Migration):

    dependencies = [
        ("orchestration", "0030_flow"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="StepPolicy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("workflow", models.CharField(editable=False, max_length=60)),
                ("step", models.CharField(editable=False, max_length=60)),
                (
                    "agent",
                    models.CharField(
                        editable=False, help_text="The agent that the step calls as it is declared.", max_length=60
                    ),
                ),
                *own(),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "verbose_name_plural": "step policies",
                "ordering": ["workflow", "step"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("failure_threshold__gte", 1), ("failure_threshold__lte", 1000)),
                        name="step_policy_failure_threshold",
                        violation_error_message=(
                            "The failure threshold must be between 1 and 1000: with 0, a step would be an error "
                            "before it was tried."
                        ),
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("past_threshold__in", ["error", "wait", "undo"])),
                        name="step_policy_past_threshold",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("on_rejection__in", ["error", "wait", "undo"])),
                        name="step_policy_on_rejection",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("resolve_within__gt", 0), ("resolve_within__lte", 2_592_000)),
                        name="step_policy_resolve_within",
                        violation_error_message=(
                            "A rejected step must wait more than 0 seconds, and at most 30 days, to be mended."
                        ),
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("extended_wait__gt", 0),
                            ("extended_wait__lte", 604_800),
                            ("max_extended_waits__lte", 1000),
                        ),
                        name="step_policy_extended_wait",
                        violation_error_message=(
                            "The extended wait must be more than 0 seconds and at most a week, and be taken at most "
                            "1000 times."
                        ),
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("undo_threshold__gte", models.F("failure_threshold")), ("undo_threshold__lte", 10_000)
                        ),
                        name="step_policy_undo_threshold",
                        violation_error_message=(
                            "An undo must be tried at least as often as what it undoes (undo threshold ≥ failure "
                            "threshold), and at most 10,000 times."
                        ),
                    ),
                    models.UniqueConstraint(fields=("workflow", "step"), name="step_policy_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="HistoricalStepPolicy",
            fields=[
                ("id", models.BigIntegerField(auto_created=True, blank=True, db_index=True, verbose_name="ID")),
                ("workflow", models.CharField(editable=False, max_length=60)),
                ("step", models.CharField(editable=False, max_length=60)),
                *own(),
                ("updated_at", models.DateTimeField(blank=True, editable=False)),
                ("history_id", models.AutoField(primary_key=True, serialize=False)),
                ("history_date", models.DateTimeField(db_index=True)),
                ("history_change_reason", models.CharField(max_length=100, null=True)),
                (
                    "history_type",
                    models.CharField(
                        choices=[("+", "Created"), ("~", "Changed"), ("-", "Deleted")], max_length=1
                    ),
                ),
                (
                    "history_user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "historical step policy",
                "verbose_name_plural": "historical step policies",
                "ordering": ("-history_date", "-history_id"),
                "get_latest_by": ("history_date", "history_id"),
            },
            bases=(simple_history.models.HistoricalChanges, models.Model),
        ),
    ]
