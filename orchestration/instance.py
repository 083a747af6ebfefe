"""The ids of what is at work in this process: fresh at each start, so that no death seems a sleep.

A process may host several components, a scheduler and some agents say. Each is an instance of its own.
"""

import hashlib
import logging
import os
import secrets
import socket
import sys
from typing import NoReturn

LONGEST_LABEL = LONGEST_HOST = 30  # characters; with the rest an id fits into 80
_suffix = ""


def _begin() -> None:
    """Be another process than any before: also one that goes on in a fork."""
    global _suffix  # noqa: PLW0603 - one identity per process
    _suffix = secrets.token_hex(3)


_begin()
os.register_at_fork(after_in_child=_begin)


def name(label: str) -> str:
    """Return the id of a component of this process, such as a queue's worker; at most 80 characters.

    It says what is at work, where, and in which process; its end tells one start from any other. Two
    long labels that begin alike stay apart, by a digest.
    """
    host = socket.gethostname()[:LONGEST_HOST]
    if len(label) > LONGEST_LABEL:
        digest = hashlib.blake2s(label.encode(), digest_size=4).hexdigest()
        label = f"{label[: LONGEST_LABEL - len(digest) - 1]}~{digest}"
    return f"{label}@{host}:{os.getpid()}-{_suffix}"


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
