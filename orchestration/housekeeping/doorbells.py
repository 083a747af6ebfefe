"""Ring for status messages and notifications that are due and not served."""

from collections.abc import Mapping
from typing import Any

from .. import conf, registry
from ..alerting import notifications
from ..applications import push, status_messages
from ..cluster.duty import Duty, Sweep
from ..database import prepared
from ..messaging import queues
from ..models.inbox import STATUSES

# The applications with a message that was not delivered for a while, or whose retry is due: along status_due.
UNDELIVERED = f"""
SELECT a.name FROM unnest(%(receivers)s::text[]) AS a (name)
WHERE {STATUSES.is_overdue("m.reply_to = a.name")}
"""  # noqa: S608 - put together from constants


def _receivers() -> Mapping[str, Any]:
    return {"receivers": list(registry.receivers)}


def ring(_: Sweep) -> None:
    """Ring for what lies unserved: a lost doorbell costs seconds, not a message."""
    names = sorted(name for (name,) in prepared.run(UNDELIVERED, _receivers()))
    unserved = {
        **dict.fromkeys(map(status_messages.queue_of, names), True),
        queues.PUSH: push.due(),
        queues.ALERTS: notifications.due(),
    }
    for name, is_due in unserved.items():
        if is_due:
            queues.try_to_ring(name)


# The interval is for what has no worker waiting for it: pushes and notifications.
RING_DOORBELLS = Duty(
    name="ring doorbells",
    run=ring,
    due=f"EXISTS ({UNDELIVERED})",
    every=conf.DUTY_INTERVAL_S,
    parameters=_receivers,
)
