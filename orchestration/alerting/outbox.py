"""Outboxes: tables whose rows are sent until they arrive or are given up.

A claim moves a row's next time ahead (a lease), and no transaction is open while it is sent. If the
process dies, the row is sent again after the lease. So a receiver may get a message twice, under the
same id.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from .. import conf
from ..database import sql
from ..decisions.backoff import backoff

Chance = Callable[[], float]

# Guarded by the try: a process whose lease another process took over changes nothing.
FAILED = """
UPDATE {table} SET {error} = %(error)s,
    send_after = clock_timestamp() + %(wait)s * interval '1 second',
    {given_up} = CASE WHEN %(hopeless)s OR tries >= %(least)s
        AND created_at < (SELECT clock_timestamp()) - %(patience)s * interval '1 second'
        THEN clock_timestamp() END
WHERE id = %(id)s AND tries = %(tries)s AND {waiting}
RETURNING {given_up} IS NOT NULL
"""

CLAIM = """
WITH due AS MATERIALIZED ({due})
UPDATE {table} m
SET tries = m.tries + 1, send_after = clock_timestamp() + %(lease)s * interval '1 second'
FROM due WHERE m.id = due.id
RETURNING m.id
"""


class OutboxRow(Protocol):
    """A row of an outbox."""

    id: Any
    created_at: datetime
    tries: int


class Signed(Protocol):
    """A receiver of signed webhooks."""

    secret: str
    old_secret: str


@dataclass(frozen=True, kw_only=True)
class Outbox:
    """A table with `tries`, `send_after` and `created_at`, whose rows are sent.

    `due` selects and locks the ids of rows to send now; `waiting` is the condition of a row that is
    still to be sent; `error` and `given_up` are columns: why the last try failed, and when it was
    given up. That is after `least_tries`, and after `conf.NOTIFICATION_MAX_AGE_S` seconds.
    """

    name: str
    table: str
    due: str
    waiting: str
    error: str
    given_up: str
    least_tries: int = 1

    def claim(self, **parameters: int) -> list[int]:
        """Lease the rows that are due; return their ids.

        Must not run inside a transaction: other processes must see the lease.
        """
        statement = CLAIM.format(due=self.due, table=self.table)
        rows = sql.run(statement, {**parameters, "lease": conf.NOTIFICATION_LEASE_S})
        return [number for (number,) in rows]

    def failed(self, row: OutboxRow, error: str, chance: Chance, *, hopeless: bool = False) -> bool:
        """Record a failed try: schedule the next one, or give the row up; return whether it is given up."""
        values = {
            "id": row.id,
            "tries": row.tries,
            "error": error,
            "wait": wait(row.tries, chance()),
            "hopeless": hopeless,
            "least": self.least_tries,
            "patience": conf.NOTIFICATION_MAX_AGE_S,
        }
        columns = {"error": self.error, "given_up": self.given_up, "waiting": self.waiting}
        return any(rows[0] for rows in sql.run(FAILED.format(table=self.table, **columns), values))

    def message_id(self, row: OutboxRow) -> str:
        """A globally unique id of a row, the same for each try."""
        return f"{self.name}-{row.id}-{int(row.created_at.timestamp() * 1_000_000)}"


def wait(tries: int, chance: float) -> float:
    """Return the seconds to wait after the nth try failed."""
    return backoff(conf.NOTIFICATION_WAIT_S, conf.NOTIFICATION_WAIT_CAP_S, tries, chance)


def signing_secrets(receiver: Signed) -> Sequence[str]:
    """The secrets that sign messages to a receiver: two while it changes over."""
    return [secret for secret in (receiver.secret, receiver.old_secret) if secret]
