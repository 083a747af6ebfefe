"""Runs the shop's checks within the engine's audit."""

import json
from collections.abc import Iterator

from django.db import connection

from orchestration.api import Part, Scope, Violation
from orders.lifecycle.message import WORKFLOW, fingerprint

from . import exchanges, gift_cards, orders, partners, removals, returns, stock, subscriptions

SUBJECTS = (orders, gift_cards, removals, returns, exchanges, stock, subscriptions)
BATCH = 2_000  # orders
CONTENT = """
SELECT t.reference, d.data, o.fingerprint FROM audit_task t
JOIN audit_data d ON d.task = t.id JOIN orders_order o ON o.id = t.order_id
WHERE t.workflow = %(workflow)s
"""


def audit(part: Part) -> Iterator[Violation]:
    """Check the orders, and their effects at the agents whose ledgers were read."""
    checks = [check for subject in SUBJECTS for check in subject.CHECKS]
    checks += [partners.PHANTOMS] if part.ledgers else []
    for agent in sorted(part.ledgers):
        checks += partners.CHECKS.get(agent, ())
    for check in checks:
        if check.scope == part.scope:
            yield from check.violations({"since": part.since})
    if part.scope == Scope.TASKS:
        yield from _altered()


def _altered() -> Iterator[Violation]:
    """Find tasks whose content differs from their order's."""
    with connection.cursor() as cursor:
        cursor.execute(CONTENT, {"workflow": WORKFLOW})
        while rows := cursor.fetchmany(BATCH):
            for reference, data, content in rows:
                if fingerprint(data if not isinstance(data, str) else json.loads(data)) != content:
                    yield Violation(
                        invariant=2,
                        reference=reference,
                        problem="its task's content differs from the order's",
                        remedy="Compare the task's input with the order, and undo it if that is wrong.",
                    )
