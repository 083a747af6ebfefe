"""The act of changing a priority: its permission, and its place among what people did."""

from importlib import import_module

from django.db import migrations, models

indexes = import_module("orchestration.migrations.0026_set_aside_by_index")
build, remove = indexes.build, indexes.remove

PERMISSIONS = [
    ("operate", "Can see the operators' dashboard"),
    ("resubmit", "Can resubmit failed steps"),
    ("correct", "Can change a failed step's input, or say that it was done by hand"),
    ("undo", "Can have tasks undone"),
    ("force_undo", "Can have tasks undone although something of them cannot be"),
    ("prioritize", "Can change the priority of tasks"),
    ("bulk", "Can act on many tasks at once"),
    ("approve", "Can be the second person for a big act on many tasks"),
    ("see_personal", "Can see personal data"),
]
KINDS = [
    ("retry", "Will be tried again"),
    ("error", "Stopped in error"),
    ("resubmitted", "Resubmitted"),
    ("refused", "A late or repeated reply was refused"),
    ("late", "Its effect was proven after it was given up"),
    ("overdue", "Overdue"),
    ("excused", "Failed while its agent was in trouble: not counted"),
    ("waits", "Waits for an extended time"),
    ("by_hand", "Done by hand"),
    ("undo", "An undo was asked for"),
    ("no_undo", "An undo was refused"),
    ("settled", "It was found out that nothing was done"),
    ("held", "Held"),
    ("released", "Released"),
    ("priority", "Its priority was changed"),
    ("probe", "A probe was asked for at once"),
    ("acknowledged", "An alert was acknowledged"),
    ("bulk", "Something was done to a bulk operation"),
    ("incident", "Something was done about an incident"),
    ("cause", "An incident changed by itself"),
    ("retried", "A dead letter was retried"),
    ("closed", "A dead letter or an alert was closed"),
]
ACTS = (
    *("resubmitted", "by_hand", "undo", "no_undo", "held", "released", "priority", "probe"),
    *("acknowledged", "bulk", "incident", "retried", "closed"),
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("orchestration", "0039_keepers_of_tasks")]

    operations = [
        migrations.RunSQL(
            "SET lock_timeout = 0; SET statement_timeout = 0", migrations.RunSQL.noop
        ),
        migrations.AlterModelOptions("task", {"permissions": PERMISSIONS}),
        migrations.AlterField("event", "kind", models.CharField(choices=KINDS, max_length=12)),
        *build(
            "event",
            models.Index(fields=["-at"], name="event_by_people", condition=models.Q(kind__in=ACTS)),
        ),
        remove("event", "event_of_people"),
        migrations.RunSQL("RESET lock_timeout; RESET statement_timeout", migrations.RunSQL.noop),
    ]
