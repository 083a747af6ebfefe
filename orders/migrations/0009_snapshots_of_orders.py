"""Orders that there are get their snapshots, and what was set aside its note: in batches.

Until an order has one, its page shows its status alone.
"""

from dataclasses import replace

from django.db import migrations

WORKFLOW = "process_order"
BATCH = 500
ASIDE = """
UPDATE orders_placement p SET aside = CASE WHEN s.closed_at IS NULL THEN 'refused' ELSE 'closed' END
FROM orchestration_submission s
WHERE s.workflow = 'process_order' AND s.reference = p."order"::text AND s.refused_at IS NOT NULL
"""


def take_snapshots(apps, _):
    """Write where each order's task stands; a message that comes meanwhile has the last word."""
    orders = apps.get_model("orders", "Order").objects.filter(snapshot__isnull=True)
    last = None
    while ids := list(
        (orders.filter(id__gt=last) if last else orders)
        .order_by("id")
        .values_list("id", "status_number")[:BATCH]
    ):
        from orchestration.api import progress  # where there are no orders, no code is needed

        for order, number in ids:
            if task := progress(WORKFLOW, str(order)):
                kept = replace(task, data={}).as_json()
                orders.filter(id=order, status_number=number).update(snapshot=kept)
        last = ids[-1][0]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("orders", "0008_snapshots"),
        ("orchestration", "0039_keepers_of_tasks"),
    ]

    operations = [
        migrations.RunSQL(ASIDE, migrations.RunSQL.noop),
        migrations.RunPython(take_snapshots, migrations.RunPython.noop),
    ]
