"""The release before this one: its files, for drills that run its processes on this release's tables.

It is the newest tag of a version; as long as there is none, the commit before the newest migration was added.
"""

import io
import subprocess
import tarfile
from pathlib import Path

from sasweb.stack import folders

NEWEST_TAG = ("describe", "--tags", "--match=v[0-9]*", "--abbrev=0", "HEAD^")
NEWEST_MIGRATION = (
    *("log", "-1", "--format=%H", "--diff-filter=A"),
    *("--", "orchestration/migrations", "orders/migrations"),
)


def commit(migration: str = "") -> str:
    """Return the commit of the release before this one; raise RuntimeError if the history has none.

    With a `migration` that of before its file was added.
    """
    if migration:
        added = _git(*NEWEST_MIGRATION[:-2], migration).decode().strip()
        return _git("rev-parse", "--verify", f"{added}^").decode().strip()
    try:
        return _git(*NEWEST_TAG).decode().strip()
    except RuntimeError:
        newest = _git(*NEWEST_MIGRATION).decode().strip()
        return _git("rev-parse", "--verify", f"{newest}^").decode().strip()


def check_out(folder: Path, migration: str = "") -> Path:
    """Write the files of the release before this one into a folder beside others; return it."""
    name = commit(migration)
    tree = folder / name[:12]
    if not tree.exists():
        with tarfile.open(fileobj=io.BytesIO(_git("archive", name))) as archive:
            archive.extractall(folders.make(tree, folders.PASSABLE), filter="data")
    return tree


def _git(*arguments: str) -> bytes:
    done = subprocess.run(
        ["git", *arguments], cwd=folders.PROJECT, check=False, capture_output=True
    )
    if done.returncode:
        raise RuntimeError(f"git {arguments[0]}: {done.stderr.decode().strip()}")
    return done.stdout
