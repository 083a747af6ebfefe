"""An append-only file of JSON rows that survives kill -9.

Each row is one line, handed to the operating system in one write before the caller goes on; there
is no fsync, so a power cut may cost the newest rows, and a torn last line is dropped at the start.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = list[Any]

HEADER: Row = ["sandbox", 1]  # the format and its version
encode = json.JSONEncoder(separators=(",", ":")).encode


class JournalError(Exception):
    """The journal cannot be used; the message says why and what to do."""


class Journal:
    """The rows of one file, held by this process alone."""

    def __init__(self, path: Path) -> None:
        """Open or create the file; raises JournalError when another process holds it."""
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise JournalError(
                f"Cannot open the ledger {path}: {error.strerror}. Choose another folder by --data."
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            raise JournalError(
                f"Another sandbox is using {path}: stop it, or choose another folder by --data."
            ) from error

    def rows(self) -> Iterator[Row]:
        """Yield all rows but the header; cut off a torn last line. Raises JournalError."""
        whole = 0
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break
                row = self._parse(line, number)
                if number > 1:
                    yield row
                elif row != HEADER:
                    raise self.unreadable(number)
                whole += len(line)
        os.ftruncate(self._file, whole)
        if not whole:
            self.append(HEADER)

    def append(self, row: tuple[Any, ...] | Row) -> None:
        """Write one row; it is with the operating system when this returns."""
        line = encode(row).encode() + b"\n"
        written = os.write(self._file, line)
        if written != len(line):
            os.ftruncate(self._file, os.fstat(self._file).st_size - written)
            raise OSError(f"the disk is full, {self._path} takes no more")

    def clear(self) -> None:
        """Forget all rows."""
        os.ftruncate(self._file, 0)
        self.append(HEADER)

    def close(self) -> None:
        """Close the file and let go of it."""
        os.close(self._file)

    def _parse(self, line: bytes, number: int) -> Row:
        try:
            row = json.loads(line)
        except ValueError as error:
            raise self.unreadable(number) from error
        if not isinstance(row, list) or not row:
            raise self.unreadable(number)
        return row

    def unreadable(self, number: int) -> JournalError:
        """Return the error that names a line which makes no sense."""
        return JournalError(
            f"Line {number} of {self._path} is not a row of a sandbox's ledger. "
            "Mend that line, or move the file away to begin with an empty ledger."
        )
