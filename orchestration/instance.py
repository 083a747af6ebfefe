"""Who this process is: a fresh id at each start, so that no death is ever mistaken for a sleep."""

import logging
import os
import secrets
import socket
import sys
from typing import NoReturn

LONGEST_LABEL = LONGEST_HOST = 30  # characters; with the rest an id fits into 80
_label = "process"
_suffix = ""


def _begin() -> None:
    """Be another process than any before: also one that goes on in a fork."""
    global _suffix  # noqa: PLW0603 - one identity per process
    _suffix = secrets.token_hex(3)


_begin()
os.register_at_fork(after_in_child=_begin)


def become(label: str) -> str:
    """Name this process after its work; return its instance id."""
    global _label  # noqa: PLW0603 - one identity per process
    _label = label
    return name()


def name() -> str:
    """Return the instance id: what it does, where, and which start of it; at most 80 characters."""
    host = socket.gethostname()[:LONGEST_HOST]
    return f"{_label[:LONGEST_LABEL]}@{host}:{os.getpid()}-{_suffix}"


def end(code: int = 0) -> NoReturn:
    """End this process, whose work is done and whose connections are closed, at once.

    Python would take its thousand modules apart first: 0.3 s of CPU, and all processes of a machine
    are stopped together.
    """
    try:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:  # also if nothing reads the output any more
        os._exit(code)
