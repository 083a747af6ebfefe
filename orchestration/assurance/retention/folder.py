"""A folder of an archive: files of compressed lines, and a manifest that names each with its checksum.

A file is on disk, and was read back, before the manifest names it; the manifest is replaced as a whole.
"""

import fcntl
import gzip
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
FORMAT = 1


class Damaged(Exception):
    """A file of an archive is not what its manifest says; the text names it."""


@dataclass(kw_only=True)
class Entry:
    """One file: what is in it, and whether its tasks were surely removed from the database."""

    file: str
    workflow: str
    tasks: int
    rows: dict[str, int]
    first_end: str
    last_end: str
    schema: str
    columns: dict[str, list[str]]
    bytes: int = 0
    sha256: str = ""
    removed: bool = False


@dataclass(kw_only=True)
class Folder:
    """An archive's folder, locked by this process."""

    path: Path
    entries: list[Entry] = field(default_factory=list)

    def write(self, entry: Entry, lines: Sequence[str]) -> None:
        """Write a file of lines, read it back, and name it in the manifest."""
        number = len(self.entries) + 1
        while (
            self.path / _named(number)
        ).exists():  # left by a process that died: it is not touched
            number += 1
        entry.file = _named(number)
        packed = gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
        entry.bytes, entry.sha256 = len(packed), hashlib.sha256(packed).hexdigest()
        _store(self.path / entry.file, packed)
        if list(self.read(entry)) != list(lines):
            raise Damaged(f"{entry.file} was read back with other content")
        self.entries.append(entry)
        self.note()

    def read(self, entry: Entry) -> Iterator[str]:
        """Yield the lines of a file; raise `Damaged` before the first if it was changed."""
        try:
            packed = (self.path / entry.file).read_bytes()
        except OSError as error:
            raise Damaged(f"{entry.file} cannot be read: {error}") from error
        if len(packed) != entry.bytes or hashlib.sha256(packed).hexdigest() != entry.sha256:
            raise Damaged(f"{entry.file} is not the file that the manifest names: another checksum")
        lines = gzip.decompress(packed).decode().split("\n")[:-1]
        if len(lines) != entry.tasks:
            raise Damaged(f"{entry.file} has {len(lines)} tasks, not {entry.tasks}")
        yield from lines

    def drop(self, entry: Entry) -> None:
        """Remove a file whose tasks are all in the database."""
        self.entries.remove(entry)
        self.note()
        (self.path / entry.file).unlink()

    def note(self) -> None:
        """Write the manifest."""
        known = {"format": FORMAT, "files": [asdict(entry) for entry in self.entries]}
        _store(self.path / MANIFEST, json.dumps(known, indent=1).encode())


@contextmanager
def opened(path: Path, *, make: bool = False) -> Iterator[Folder]:
    """Lock a folder, and read its manifest. Raises `Damaged`, or OSError if another process has it."""
    if make:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        manifest = path / MANIFEST
        if not manifest.exists() and not make:
            raise Damaged(f"{path} has no {MANIFEST}")
        known: dict[str, Any] = {"format": FORMAT, "files": []}
        if manifest.exists():
            try:
                known = json.loads(manifest.read_bytes())
                entries = [Entry(**values) for values in known["files"]]
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise Damaged(f"{manifest} is not a manifest: {error}") from error
        else:
            entries = []
        if known.get("format") != FORMAT:
            raise Damaged(f"{manifest} has a format that this release does not know")
        yield Folder(path=path, entries=entries)
    finally:
        os.close(descriptor)


def _named(number: int) -> str:
    return f"tasks-{number:06}.jsonl.gz"


def _store(path: Path, content: bytes) -> None:
    """Replace a file as a whole, surely on disk: also its name in the folder."""
    new = path.with_name(f"{path.name}.new")
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
