"""What a data folder begins with: migrated databases, the demo's rows, secrets, static files.

It is made once for each state of the sources, and copied: to set up a stack takes most of its start.
"""

import fcntl
import hashlib
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

from drill.process import free_port
from drill.servers import FAST, servers
from sasweb.stack import embedded, folders

SOURCES = ("orchestration", "orders", "sasweb", "static", "drill/template.py")
SUFFIXES = {".css", ".js", ".py", ".svg", ".txt"}
PARTS = ("postgres", "secrets", "static")
# as the migrations leave it, without the demo's rows; the name is the one that Django's tests use
MIGRATED = f"test_{embedded.DATABASE}"


def copy_into(folder: Path) -> None:
    """Replace these parts of a data folder that no process uses."""
    for part in PARTS:
        shutil.rmtree(folder / part, ignore_errors=True)
    template = _template()
    # with their owners: Postgres' files belong to the user that it runs as
    subprocess.run(["cp", "-a", *(template / part for part in PARTS), folder], check=True)


def _template() -> Path:
    """Return the folder of the template; make it unless it is there, and delete older ones."""
    top = Path(os.environ.get("TEMPLATE_DIR") or folders.data_dir() / "template")
    template = folders.make(top, folders.PASSABLE) / _digest()
    with (top / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            for old in filter(Path.is_dir, top.iterdir()):
                shutil.rmtree(old)
            _make(partial := top / "partial")
            partial.rename(template)
    return template


def _digest() -> str:
    """Return a name for the sources as they are."""
    digest = hashlib.sha256((folders.PROJECT / "requirements.txt").read_bytes())
    for source in (folders.PROJECT / name for name in SOURCES):
        for file in sorted(source.rglob("*")) or [source]:
            if file.suffix in SUFFIXES:
                digest.update(f"{file.relative_to(folders.PROJECT)}\n".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _make(folder: Path) -> None:
    """Make the template in a process whose data folder it is."""
    environment = {
        **os.environ,
        "DATA_DIR": str(folder),
        "DATABASE_URL": "",
        "REDIS_URL": "",
        "SECRET_KEY": "the template holds nothing that is signed",
        "SANDBOX_PORT": str(free_port()),  # no sandbox: each stack's own gets the stock
        "DJANGO_SETTINGS_MODULE": "sasweb.settings",
    }
    command = [sys.executable, "-m", "drill.template"]
    subprocess.run(command, env=environment, cwd=folders.PROJECT, check=True)


def main() -> None:
    """Fill this process's data folder."""
    os.umask(0o077)
    with servers(*FAST) as running:
        running.create_database()
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connection

        call_command("migrate", verbosity=0)
        connection.close()
        running.execute(f'CREATE DATABASE "{MIGRATED}" TEMPLATE "{embedded.DATABASE}"')
        call_command("seed", verbosity=0, stderr=io.StringIO())
        call_command("collectstatic", verbosity=0, interactive=False)
        connection.close()


if __name__ == "__main__":
    main()
