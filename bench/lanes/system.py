"""A stack with lanes: servers, the service, workers, a supervisor; and Django in this process."""

import json
import os
import secrets
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django

from bench.stack import Stack, free_port, stack, stop_all
from sasweb.stack import folders

Policies = Mapping[str, Mapping[str, Any]]


@contextmanager
def lanes(name: str, policies: Policies, *, isolated: bool = False) -> Iterator[Path]:
    """Run a whole stack in the folder `name` of the data folder; yield the folder of its logs.

    Django is set up here, too, to place tasks and to look at them; so one process has one such
    stack, once.
    """
    with stack(folders.data_dir() / name) as running:
        port = free_port()
        os.environ.update(
            running.environment,
            DJANGO_SETTINGS_MODULE="bench.lanes.settings",
            SECRET_KEY=secrets.token_urlsafe(48),
            LANES=json.dumps({lane: dict(policy) for lane, policy in policies.items()}),
            SERVICE_URL=f"http://127.0.0.1:{port}",
            ISOLATED="1" if isolated else "",
            LOG_LEVEL="WARNING",
        )
        manage = [sys.executable, "manage.py"]
        running.run([*manage, "migrate", "--verbosity", "0", "--skip-checks"], os.environ)
        queues = ["submission", "scheduler", *policies]
        commands = {
            "service": [sys.executable, "-m", "bench.lanes.service", str(port)],
            "workers": [sys.executable, "-m", "bench.lanes.workers", *queues],
            "supervisor": [*manage, "supervisor", "--skip-checks"],
            "housekeeper": [*manage, "housekeeper", "--skip-checks"],
        }
        started = [_start(running, kind, command) for kind, command in commands.items()]
        django.setup()
        try:
            yield running.logs
        finally:
            stop_all(started[::-1])


def command(measure: Callable[[Namespace], int], options: Namespace) -> int:
    """Measure as a command does: stopped by SIGINT or SIGTERM it leaves nothing running."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return measure(options)
    except KeyboardInterrupt:
        sys.stderr.write("Stopped; nothing is left running.\n")
        sys.stderr.flush()
        os._exit(130)  # not waiting for threads, which may sleep for minutes


def conclude(missed: Sequence[str], last_line: str) -> int:
    """Print what was missed, then the line for scripts; return the exit code."""
    for sentence in missed:
        sys.stderr.write(f"Missed: {sentence}\n")
    sys.stderr.flush()
    sys.stdout.write(last_line + "\n")
    return 1 if missed else 0


def _start(running: Stack, kind: str, command: list[str]) -> Any:
    return running.start(kind, command, env={**os.environ, "PROCESS": kind})
