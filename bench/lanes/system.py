"""A stack with lanes: servers, the service, workers, a supervisor; and Django in this process."""

import json
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django

from bench.testbed import testbed
from drill.process import end_all, free_port, require_running
from sasweb.stack import folders

Policies = Mapping[str, Mapping[str, Any]]


@contextmanager
def lanes(name: str, policies: Policies, *, isolated: bool = False) -> Iterator[Path]:
    """Run a stack with lanes in the folder `name` of the data folder; yield the folder of its logs.

    Also sets Django up in this process, which submits and observes tasks. So a process can run one
    such stack only, once.
    """
    with testbed(folders.data_dir() / name) as running:
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
            "supervisor": [*manage, "supervisor"],
            "housekeeper": [*manage, "housekeeper"],
        }
        started = []
        try:
            for kind, command in commands.items():
                variables = {**os.environ, "PROCESS": kind}
                started.append(running.process(kind, command, env=variables))
            django.setup()
            yield running.logs
            require_running(started)
        finally:
            end_all(started[::-1])
