"""A stack's private folders, and the secrets in them.

A user who can write into these folders decides what a stack runs. So each folder is made exclusively,
closed to other users, and an existing one is used only if this user owns it: never a link, and never a name
in a shared folder that another user could have made first.
"""

import fcntl
import hashlib
import os
import pwd
import secrets
import shutil
import stat
import tempfile
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import IO, Any

PROJECT = Path(__file__).resolve().parent.parent.parent
CHOOSE = "DATA_DIR=/path/of/a/folder make run"
PRIVATE = 0o700
PASSABLE = 0o711  # others pass through to what is theirs, and cannot look around
SERVER_USER = "nobody"  # Postgres refuses to run as root
LONGEST_SOCKET_FOLDER = 80  # bytes; a socket's whole path must stay under some 104


@cache
def data_dir() -> Path:
    """Return the folder that holds everything a stack keeps: DATA_DIR, or `.data` in the project.

    Root's servers run as "nobody", who must be able to reach the folder: where the project lies in
    a private home, the default is in `outside()`.
    """
    if named := os.environ.get("DATA_DIR"):
        # not resolved: a link must be seen as one
        return Path(os.path.abspath(named))  # noqa: PTH100
    return outside() / "data" if _needs_outside(PROJECT) else PROJECT / ".data"


def outside() -> Path:
    """Return the folder for what "nobody" must reach when root's project lies in a private home.

    Only root can make anything in /var/lib: a name there may be guessed without harm.
    """
    digest = hashlib.sha256(os.fsencode(PROJECT)).hexdigest()[:12]
    return Path("/var/lib") / f"sas-{digest}"


def make_data_dir() -> Path:
    """Make the data folder, or check that this user owns it; return it. Raises SystemExit saying why not."""
    folder = data_dir()
    for above in folder.parents if os.environ.get("DATA_DIR") else ():
        if above.exists() and (why := _replaceable(above)):
            raise SystemExit(
                f"{folder} is not used, because {why}. Choose another folder: {CHOOSE}"
            )
    if _needs_outside(folder.parent):
        raise SystemExit(
            f"DATA_DIR={folder} cannot be used by root: the servers run as the user "
            f'"{SERVER_USER}", who cannot reach it. Choose a folder below /srv, or set DATABASE_URL '
            "and REDIS_URL."
        )
    return make(folder, _passable())


def make(folder: Path, mode: int = PRIVATE, *, servers: bool = False) -> Path:
    """Make `folder` and what is missing above it, or check that this user owns it; give it `mode`; return it.

    This user owns it, or the user that the embedded servers run as (`servers`). Raises SystemExit with a
    sentence that says which folder is not used, and why.
    """
    owner = server_uid() if servers else os.geteuid()
    try:
        if not folder.parent.exists():
            make(folder.parent, _passable())
        folder.mkdir(PRIVATE)
    except FileExistsError:
        if why := _not_ours(folder, owner):
            raise SystemExit(
                f"{folder} is not used, because {why}. Remove it, or choose another folder: {CHOOSE}"
            ) from None
    except OSError as error:
        raise SystemExit(
            f"{folder} cannot be made ({error.strerror}). Choose another folder: {CHOOSE}"
        ) from None
    if owner != os.geteuid():
        os.chown(folder, owner, _server().pw_gid)
    folder.chmod(mode)
    return folder


def lock(folder: Path, *, shared: bool = False) -> IO[str]:
    """Lock a folder until the file that is returned is closed; raise SystemExit if it is in use."""
    try:
        file = (folder / "lock").open("a")
    except PermissionError:
        raise SystemExit(f"{folder} cannot be used: it belongs to another user.") from None
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise SystemExit(
            f"A stack that runs uses {folder}. Stop it, or choose another folder: {CHOOSE}"
        ) from None
    return file


def lock_copies() -> AbstractContextManager[object]:
    """Hold what lies outside of the project while a stack runs on it, if anything does."""
    return lock(outside(), shared=True) if is_ours(outside()) else nullcontext()


def is_ours(folder: Path) -> bool:
    """Return whether a folder is there, and of the kind that `make` would use."""
    return folder.is_dir() and not _not_ours(folder, os.geteuid())


def _not_ours(folder: Path, owner: int) -> str:
    """Return why a folder may hold what another user put there; empty if it may not."""
    status = folder.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"it is a link to {folder.readlink()}"
    if not stat.S_ISDIR(status.st_mode):
        return "it is a file"
    if status.st_uid not in {os.geteuid(), owner}:
        return f"it belongs to {_name(status.st_uid)}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(status.st_mode)
        return f"other users may write into it (its mode is {mode:o}; if it is yours: chmod 700)"
    return ""


def _replaceable(above: Path) -> str:
    """Return why another user could put a folder of theirs in the place of one below; empty if not."""
    status = above.stat()
    if status.st_uid not in {0, os.geteuid()}:
        return f"{above} belongs to {_name(status.st_uid)}"
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        return f"other users may rename what lies in {above}"
    return ""


# --- Sockets -----------------------------------------------------------------------------------
def socket_dir() -> Path:
    """Return the folder of the servers' sockets: `run` in the data folder, or where that links to."""
    folder = data_dir() / "run"
    return folder.readlink() if folder.is_symlink() else folder


def make_socket_dir() -> Path:
    """Make the folder of the sockets; return it.

    Where the data folder's path is too long for a socket, it is a new one with a random name, and
    `run` a link to it: in a folder of this user, a link can be believed.
    """
    folder = data_dir() / "run"
    if len(os.fsencode(folder)) <= LONGEST_SOCKET_FOLDER:
        return make(folder, servers=True)
    if not _has_sockets(folder):
        folder.unlink(missing_ok=True)
        folder.symlink_to(tempfile.mkdtemp(prefix="sas-", dir=_temporary()))
    return make(folder.readlink(), servers=True)


def remove_socket_dir() -> None:
    """Remove the folder of the sockets where it lies outside of the data folder."""
    folder = data_dir() / "run"
    if folder.is_symlink():
        if _has_sockets(folder):
            shutil.rmtree(folder.readlink())
        folder.unlink()


def _has_sockets(link: Path) -> bool:
    """Return whether a link leads to a folder that this user owns."""
    there = link.is_symlink() and link.readlink().is_dir()
    return there and not _not_ours(link.readlink(), server_uid())


def _temporary() -> Path:
    """Return a folder for temporary ones whose path is short, and that the servers can reach."""
    usual = Path(tempfile.gettempdir())
    good = len(os.fsencode(usual)) < LONGEST_SOCKET_FOLDER - 16 and not _needs_outside(usual)
    return usual if good else Path("/tmp")  # noqa: S108 - a random name in it, made exclusively


# --- Secrets -----------------------------------------------------------------------------------
def secret(name: str, *, make_it: bool = False) -> str:
    """Return a random text kept in the data folder; empty when it is not there (and not made)."""
    file = secret_file(name)
    if file.exists():
        return file.read_text()
    if not make_it:
        return ""
    make(file.parent)
    value = secrets.token_urlsafe(12 if name.endswith("_password") else 48)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as handle:
        handle.write(value)
    return value


def secret_file(name: str) -> Path:
    """Return where a secret is kept."""
    return data_dir() / "secrets" / name


# --- Users -------------------------------------------------------------------------------------
def server_user() -> str | None:
    """Return the user that the embedded servers run as, where it may not be this one."""
    return SERVER_USER if os.geteuid() == 0 else None


def server_uid() -> int:
    """Return the id of the user that the embedded servers run as."""
    return _server().pw_uid if server_user() else os.geteuid()


def server_identity() -> dict[str, Any]:
    """Return how `subprocess` starts a program as that user, from a folder that it can be in."""
    if not server_user():
        return {}
    return {"user": server_uid(), "group": _server().pw_gid, "extra_groups": [], "cwd": "/"}


def reachable_by_servers(path: Path) -> bool:
    """Return whether the user that the embedded servers run as can get to a file or folder."""
    if not server_user():
        return True
    above = (part for part in path.parents if part.exists())
    return all(part.stat().st_mode & stat.S_IXOTH for part in above)


def _needs_outside(folder: Path) -> bool:
    return not reachable_by_servers(folder / "inside")


def _passable() -> int:
    return PASSABLE if server_user() else PRIVATE


def _server() -> pwd.struct_passwd:
    return pwd.getpwnam(SERVER_USER)


def _name(uid: int) -> str:
    try:
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"the user with the id {uid}"
