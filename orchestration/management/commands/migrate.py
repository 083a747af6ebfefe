"""`manage.py migrate`: Django's own, which waits for no lock for long."""

import time
from contextlib import suppress
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import Error, OperationalError, connections

from orchestration.database import sql

LOCK_TIMEOUT = "2s"  # what needs the table queues behind a migration that waits for its lock
WAITS = (1, 2, 4, 8, 16)  # seconds before each further try
OLDEST = """
SELECT pid, coalesce(usename, ''), coalesce(client_addr::text, 'local'),
    round(extract(epoch FROM clock_timestamp() - xact_start)), left(query, 80)
FROM pg_stat_activity
WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database()
ORDER BY xact_start LIMIT 1
"""


class Command(migrate.Command):
    """Gives up on a lock that is not free within two seconds, and tries again a few times.

    What was applied stays; a migration that gave up is rolled back, or can be run again.
    """

    def handle(self, *args: Any, **options: Any) -> None:
        """Apply the migrations; a look at them (`--check`, `--plan`) sets nothing on its session.

        Behind a pooler the session may be another one when it is set back, and keep the limit.
        """
        if options["check_unapplied"] or options["plan"]:
            super().handle(*args, **options)
            return
        connection = connections[options["database"]]
        for wait in (*WAITS, None):
            with connection.cursor() as cursor:
                cursor.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
            try:
                super().handle(*args, **options)
            except OperationalError as error:
                if not sql.is_busy(error):
                    raise
                if wait is None:
                    raise CommandError(
                        f"A table was locked in each of {len(WAITS) + 1} tries ({_oldest(connection)}). "
                        "End that session, and run this again."
                    ) from error
                self.stderr.write(f"A table is locked ({_oldest(connection)}): again in {wait} s.")
                time.sleep(wait)
            else:
                break
            finally:
                with suppress(Error), connection.cursor() as cursor:
                    cursor.execute("RESET lock_timeout")


def _oldest(connection: Any) -> str:
    """Return what is known of the session with the oldest transaction, which is likely the cause."""
    with connection.cursor() as cursor:
        cursor.execute(OLDEST)
        row = cursor.fetchone()
    if row is None:
        return "by a session that has ended since"
    pid, user, address, seconds, query = row
    return f"oldest transaction: pid {pid}, {user} from {address}, {seconds:.0f} s, {query!r}"
