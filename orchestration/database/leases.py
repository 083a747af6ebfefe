"""Leases of a lane's rows, which are delivered while no transaction is open.

A claim counts as a try and moves a row's next time ahead. If the process dies, the row is due again after
that. So a receiver may get a message twice, under the same id.
"""

from typing import Any

from .. import conf
from . import sql
from .lane import Lane

CLAIM = """
WITH due AS MATERIALIZED ({due})
UPDATE {table} m SET tries = m.tries + 1, {due_at} = clock_timestamp() + %(lease)s * interval '1 second'
FROM due WHERE m.id = due.id
RETURNING m.id
"""


def claim(lane: Lane, due: str, **parameters: int) -> list[int]:
    """Lease the rows whose ids `due` selects and locks; return their ids.

    Must not run inside a transaction: other processes must see the lease.
    """
    statement = CLAIM.format(due=due, table=lane.table, due_at=lane.due_at)
    rows = sql.run(statement, {**parameters, "lease": conf.NOTIFICATION_LEASE_S})
    return [number for (number,) in rows]


def message_id(lane: Lane, row: Any) -> str:
    """Return a globally unique id of a row, the same for each try."""
    return f"{lane.name}-{row.id}-{int(row.created_at.timestamp() * 1_000_000)}"
