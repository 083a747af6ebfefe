"""What each session with Postgres needs: time-outs, and the isolation level of its transactions.

Straight to the server they are asked for with the connection. A pooler in transaction mode refuses such
options, and gives each transaction another session, so there they belong to the role, and a process looks
once whether it has them.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg2.extensions import TRANSACTION_STATUS_IDLE

logger = logging.getLogger(__name__)

ISOLATION = "default_transaction_isolation"
SETTINGS = {
    # a process that hangs inside a transaction must not hold its locks for long
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "8s",
    "statement_timeout": "30s",
    # what is counted under a lock has to be seen as it is once the lock is there
    ISOLATION: "read committed",
}
NONE = "0"  # of a time-out
READ = "SELECT current_user, current_database(), " + ", ".join(
    f"current_setting('{name}')" for name in SETTINGS
)


def options() -> str:
    """Return the settings as options of a connection."""
    escaped = {name: value.replace(" ", r"\ ") for name, value in SETTINGS.items()}
    return " ".join(f"-c {name}={value}" for name, value in escaped.items())


def is_pooled(here: BaseDatabaseWrapper) -> bool:
    """Return whether each transaction may have another session, as the project's settings say."""
    return bool(here.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"))


def missing(here: BaseDatabaseWrapper) -> list[str]:
    """Return a sentence for each setting that the sessions of a connection do not have."""
    with here.cursor() as cursor:
        cursor.execute(READ)
        ((role, database, *values),) = cursor.fetchall()
    return [
        f"{name} is {value!r} for the role {role} in the database {database}. The engine needs it: "
        f"ALTER ROLE \"{role}\" SET {name} = '{SETTINGS[name]}', then RECONNECT at the pooler."
        for name, value in zip(SETTINGS, values, strict=True)
        if value == NONE or (name == ISOLATION and value != SETTINGS[name])
    ]


class Look:
    """Looks at the first session of this process, and logs what it lacks: a pooler may drop options."""

    def __init__(self) -> None:
        self._looked = False

    def __call__(self, *, connection: BaseDatabaseWrapper, **_: Any) -> None:
        """Receive Django's signal `connection_created`."""
        if self._looked:
            return
        for sentence in missing(connection):
            logger.error("%s", sentence)
        self._looked = True


look = Look()


class LockWait:
    """An `execute_wrapper`: limits each wait for a lock, from the first statement of each transaction on.

    For sessions that are another one in each transaction: a plain `SET` would be left to a stranger.
    """

    def __init__(self, seconds: float) -> None:
        self._limit = f"SET LOCAL lock_timeout = '{seconds}s';"

    def __call__(
        self,
        execute: Callable[..., Any],
        text: Any,
        parameters: Any,
        many: bool,
        context: Mapping[str, Any],
    ) -> Any:
        """Execute a statement, with the limit before it if it is the first."""
        driver = context["connection"].connection
        if isinstance(text, str) and driver.get_transaction_status() == TRANSACTION_STATUS_IDLE:
            text = self._limit + text
        return execute(text, parameters, many, context)


def limit_lock_waits(here: BaseDatabaseWrapper, seconds: float) -> None:
    """Have a pooled connection limit its waits for locks in every transaction from now on.

    First of its wrappers: one that was installed for a while is removed as the last.
    """
    if not any(isinstance(wrapper, LockWait) for wrapper in here.execute_wrappers):
        here.execute_wrappers.insert(0, LockWait(seconds))
