"""The SQLite database that holds the ledger, the fault script and its counts.

A committed write survives a kill of the process: it is with the operating system. Nothing waits for
the disk (synchronous = OFF), so a crash of the machine may damage the file.
"""

import sqlite3
from pathlib import Path

APPLICATION, VERSION = 0x5A5DB0C5, 1  # marks the file as a sandbox's ledger, and its schema
SETTINGS = """
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
PRAGMA wal_autocheckpoint = 4000;
PRAGMA cache_size = -65536;
"""
# The only index is that of the key: each one more would cost every write about a tenth of a request.
SCHEMA = f"""
BEGIN;
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    partner TEXT NOT NULL,
    action TEXT NOT NULL,
    key TEXT UNIQUE,
    "order" TEXT,
    ref TEXT,
    parent TEXT,
    amount INTEGER,
    currency TEXT,
    http INTEGER NOT NULL,
    effect TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    target TEXT,
    detail TEXT,
    requests INTEGER NOT NULL
);
CREATE TABLE faults (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    script TEXT NOT NULL,
    since REAL NOT NULL,
    fired INTEGER NOT NULL,
    passed INTEGER NOT NULL
);
CREATE TABLE latencies (partner TEXT PRIMARY KEY, seconds REAL NOT NULL);
CREATE TABLE card_faults (key TEXT PRIMARY KEY, fired INTEGER NOT NULL);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
COMMIT;
"""


# Files of the former release lack it.
WEBHOOKS = "CREATE TABLE IF NOT EXISTS webhooks (ref TEXT PRIMARY KEY, body TEXT NOT NULL)"


class LedgerFileError(Exception):
    """The database cannot be used; the message says why and what to do."""


class Database:
    """One connection, which holds the file's lock until it is closed."""

    def __init__(self, path: Path) -> None:
        """Open or create the file; raises LedgerFileError, also when another process holds it."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise LedgerFileError(
                f"Cannot open the ledger {path}: {error}. Choose another folder by --data."
            ) from error
        self.execute = self._connection.execute
        self.executemany = self._connection.executemany
        try:
            if not self._is_empty():
                self._check_version(path)
            self._connection.executescript(SETTINGS)
            if self._is_empty():
                self._connection.executescript(SCHEMA)
            self.execute(WEBHOOKS)
        except sqlite3.DatabaseError as error:
            self.close()
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise LedgerFileError(
                    f"Another sandbox is using {path}: stop it, or choose another folder by --data."
                ) from error
            raise unreadable(path, str(error)) from error

    def transaction(self) -> sqlite3.Connection:
        """Begin a transaction; as a context manager the result commits it or rolls it back."""
        self.execute("BEGIN")
        return self._connection

    def clear(self) -> None:
        """Delete all rows."""
        with self.transaction():
            for table in ("entries", "faults", "latencies", "card_faults", "webhooks"):
                self.execute(f"DELETE FROM {table}")  # noqa: S608 names of our own tables

    def close(self) -> None:
        """Close the file and release its lock."""
        self._connection.close()

    def _is_empty(self) -> bool:
        return not self.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]

    def _check_version(self, path: Path) -> None:
        header = [
            self.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        ]
        if header != [APPLICATION, VERSION]:
            self.close()
            raise unreadable(path, "it has another application's tables, or another version's")


def unreadable(path: Path, reason: str) -> LedgerFileError:
    """Return the error for a file that is not a ledger of this version."""
    return LedgerFileError(
        f"{path} is not a ledger of this sandbox ({reason}). "
        "Move the file away to begin with an empty ledger."
    )
