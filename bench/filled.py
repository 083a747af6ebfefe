"""A database of its own for a benchmark that fills it."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from drill.servers import FAST, Servers, servers
from sasweb.stack import folders


@contextmanager
def database(folder: Path, *, fresh: bool, settings: Sequence[str] = FAST) -> Iterator[Servers]:
    """Run Postgres and Redis in `folder`, and set Django up on a migrated database.

    `settings` are those of Postgres; without any it writes to the disk, as in production.
    """
    os.environ["DATA_DIR"] = str(folder)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sasweb.settings")
    folders.data_dir.cache_clear()
    if fresh:
        shutil.rmtree(folder, ignore_errors=True)
    folders.make_data_dir()
    folders.secret("secret_key", make_it=True)
    with servers(*settings) as running:
        if not os.environ.get("DATABASE_URL"):
            running.create_database()
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        yield running
