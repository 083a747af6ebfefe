"""`python -m sasweb.stack.clean`: forget all that a stack kept. `make clean` calls it."""

import os
import shutil
from pathlib import Path

from . import folders

MARKS = ("supervisord.conf", "postgres/PG_VERSION")  # each stack leaves one of them at least


def main() -> None:
    """Remove the data folder, if it is one; say which."""
    found = [one for one in (folders.data_dir(), folders.outside()) if os.path.lexists(one)]
    for folder in found:
        _require_ours(folder)
        if folder == folders.data_dir():
            folders.remove_socket_dir()
        shutil.rmtree(folder, ignore_errors=folder != folders.data_dir())
        print(f"Removed {folder}")
    if not found:
        print(f"Nothing to remove: there is no {folders.data_dir()}")


def _require_ours(folder: Path) -> None:
    """Refuse what DATA_DIR names by mistake; the folder that we choose by ourselves is ours."""
    for kept in (folders.PROJECT, Path.home().resolve()):
        if folder in (kept, *kept.parents):
            raise SystemExit(f"DATA_DIR={folder} is not removed: it holds {kept}.")
    if os.environ.get("DATA_DIR") and not any((folder / mark).exists() for mark in MARKS):
        raise SystemExit(
            f"DATA_DIR={folder} is not removed: it does not look like the data of `make run`."
        )


if __name__ == "__main__":
    main()
