"""Runs the shop's checks within the engine's audit."""

import json
from collections.abc import Iterator

from django.db import connection

from orchestration.api import Violation
from orders.lifecycle.message import WORKFLOW, fingerprint
from orders.models import Order

from . import orders, partners

BATCH = 2_000  # orders
CONTENT = """
SELECT reference, data FROM audit_data
WHERE workflow = %s AND reference = ANY(%s) AND task IN (SELECT id FROM audit_task)
"""


def audit(ledgers: frozenset[str]) -> Iterator[Violation]:
    """Check the orders, and their effects at the agents whose `ledgers` were read."""
    checks = [*orders.CHECKS, *([partners.PHANTOMS] if ledgers else [])]
    for agent in sorted(ledgers):
        checks += partners.CHECKS.get(agent, ())
    for check in checks:
        yield from check.violations({})
    yield from _altered()


def _altered() -> Iterator[Violation]:
    """Find tasks whose content differs from their order's."""
    ids = Order.objects.order_by("id").values_list("id", "fingerprint")
    last = None
    while batch := list((ids.filter(id__gt=last) if last else ids)[:BATCH]):
        last = batch[-1][0]
        known = {str(order): content for order, content in batch}
        with connection.cursor() as cursor:
            cursor.execute(CONTENT, [WORKFLOW, list(known)])
            rows = cursor.fetchall()
        for reference, data in rows:
            content = data if not isinstance(data, str) else json.loads(data)
            if fingerprint(content) != known[reference]:
                yield Violation(
                    invariant=2,
                    reference=reference,
                    problem="its task's content differs from the order's",
                    remedy="Compare the task's input with the order, and undo it if that is wrong.",
                )
