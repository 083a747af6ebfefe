"""A database of its own for a benchmark that fills it, on the servers of the tests."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sasweb.stack import embedded, folders


@contextmanager
def database(folder: Path, *, fresh: bool) -> Iterator[None]:
    """Run Postgres and Redis in a folder, with the project set up on a migrated database."""
    os.environ["DATA_DIR"] = str(folder)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sasweb.settings")
    folders.data_dir.cache_clear()
    if fresh:
        shutil.rmtree(folder, ignore_errors=True)
    folders.make_data_dir()
    folders.secret("secret_key", make_it=True)
    from tests.servers import servers

    with servers():
        if not os.environ.get("DATABASE_URL"):
            _make_database()
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        yield


def _make_database() -> None:
    import psycopg2  # type: ignore[import-untyped]

    server = psycopg2.connect(dbname="postgres", user="postgres", host=str(folders.socket_dir()))
    server.autocommit = True
    with server.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [embedded.DATABASE])
        if cursor.fetchone() is None:
            cursor.execute(f'CREATE DATABASE "{embedded.DATABASE}"')
    server.close()


def say(line: str) -> None:
    """Tell how it goes."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
