"""Instance ids: one for each component of a process, new at each start.

A process may host several components, such as a scheduler and some agents. Each is an instance of its
own. A new id distinguishes a restart from a pause.
"""

import hashlib
import logging
import os
import secrets
import socket
import sys
from typing import NoReturn

from ..tracing import switch

LONGEST_LABEL = LONGEST_HOST = 30  # characters; with the rest an id fits into 80
_suffix = ""


def _begin() -> None:
    """Give this process a new identity, also after a fork."""
    global _suffix  # noqa: PLW0603 - one identity per process
    _suffix = secrets.token_hex(3)


_begin()
os.register_at_fork(after_in_child=_begin)


def name(label: str) -> str:
    """Return the id of a component of this process, such as a queue's worker; at most 80 characters.

    It names the component, host and process; its suffix differs for each start. A digest distinguishes
    long labels that begin alike.
    """
    host = socket.gethostname()[:LONGEST_HOST]
    if len(label) > LONGEST_LABEL:
        digest = hashlib.blake2s(label.encode(), digest_size=4).hexdigest()
        label = f"{label[: LONGEST_LABEL - len(digest) - 1]}~{digest}"
    return f"{label}@{host}:{os.getpid()}-{_suffix}"


def end(code: int = 0) -> NoReturn:
    """End this process at once; its work must be done and its connections closed.

    Python's own shutdown costs 0.3 s of CPU, and all processes of a machine are stopped together.
    """
    try:
        switch.finish()
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:  # also if the output is closed
        os._exit(code)
