"""`python -m sasweb.stack.clean`: forget all that a stack kept. `make clean` calls it."""

import os
import shutil
from pathlib import Path

from . import folders

MARKS = ("supervisord.conf", "postgres/PG_VERSION")  # each stack leaves one of them at least


def main() -> None:
    """Remove the data folder, if it is one, and what lies outside of the project; print which."""
    data, outside = folders.data_dir(), folders.outside()
    if os.path.lexists(data):
        _require_ours(data)
        folders.lock(data).close()
        folders.remove_socket_dir()
        _remove(data)
    else:
        print(f"Nothing to remove: {data} does not exist")
    # not with DATA_DIR: another stack's data may lie there
    if not os.environ.get("DATA_DIR") and folders.is_ours(outside):
        folders.lock(outside).close()
        _remove(outside)


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise SystemExit(f"{error.filename} cannot be removed ({error.strerror}).") from None
    print(f"Removed {folder}")


def _require_ours(folder: Path) -> None:
    """Refuse a folder that DATA_DIR names by mistake; the default folder is always accepted."""
    if folder.is_symlink():
        raise SystemExit(f"{folder} is not removed: it is a link. Remove it, and what it leads to.")
    for path in (folders.PROJECT, Path.home().resolve()):
        if folder in (path, *path.parents):
            raise SystemExit(f"DATA_DIR={folder} is not removed: it holds {path}.")
    if os.environ.get("DATA_DIR") and not any((folder / mark).exists() for mark in MARKS):
        raise SystemExit(
            f"DATA_DIR={folder} is not removed: it does not look like the data of `make run`."
        )


if __name__ == "__main__":
    main()
