"""The processes of a stack, and the configuration by which supervisord keeps them running."""

import os
import sys
from collections.abc import Mapping
from configparser import RawConfigParser
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from xmlrpc.client import ServerProxy

from django.conf import settings
from supervisor.xmlrpc import SupervisorTransport

from .. import env
from . import embedded

SERVERS, APPLICATION = "servers", "application"


@dataclass(frozen=True, kw_only=True)
class Program:
    """One process to keep running."""

    name: str
    command: list[str]
    group: str = APPLICATION
    stop_signal: str = "TERM"
    background: bool = False  # nobody waits for its answer: those for whom somebody does go first
    user: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    log: str = "/dev/fd/1"  # the one merged log

    def section(self) -> dict[str, object]:
        """Return the program's part of supervisord's configuration."""
        environment = {"PROCESS": self.name, **self.environment}
        command = [*(_nicely() if self.background else []), *self.command]
        section: dict[str, object] = {
            "command": " ".join(_quoted(part) for part in command),
            "directory": embedded.PROJECT if self.user is None else "/",
            "environment": ",".join(f'{key}="{value}"' for key, value in environment.items()),
            "autostart": "true" if self.group == SERVERS else "false",
            # whatever ends is started again, at once and for ever; "up" means "started"
            "autorestart": "true",
            "startsecs": 0,
            "stopsignal": self.stop_signal,
            "stopwaitsecs": 4,
            "killasgroup": "true",
            "redirect_stderr": "true",
            "stdout_logfile": self.log,
            "stdout_logfile_maxbytes": 0,
        }
        return section | ({"user": self.user} if self.user else {})


def programs(*, port: int, sandbox_port: int, demo: bool = False) -> list[Program]:
    """Return every process of a stack: servers (unless they are elsewhere), web, workers, sandbox.

    With `demo` also customers, who come as soon as the switch on the sandbox's page says so.
    """
    python = sys.executable
    manage = [python, str(embedded.PROJECT / "manage.py")]
    web = [python, "-m", "gunicorn", "sasweb.wsgi", "--bind", f"0.0.0.0:{port}"]
    web += ["--workers", str(_web_processes()), "--log-level", "warning"]
    sandbox = [python, "-m", "sandbox", "--port", str(sandbox_port)]
    return [
        *_servers(),
        Program(name="sandbox", command=[*sandbox, "--data", str(embedded.data_dir() / "sandbox")]),
        Program(name="web", command=web),
        *(
            Program(name=f"work-{queue}", command=[*manage, "work", queue], background=True)
            for queue in settings.RQ_QUEUES
        ),
        *(
            Program(name=f"supervisor-{number}", command=[*manage, "supervisor"], background=True)
            for number in (1, 2)
        ),
        *([_customers(manage)] if demo else []),
    ]


def _customers(manage: list[str]) -> Program:
    return Program(name="customers", command=[*manage, "demo_traffic", "--switch"], background=True)


def _nicely() -> list[str]:
    """Return how background work is started: by default with a tenth of the CPU of who else wants it."""
    return ["nice", "-n", str(env.number("NICENESS", 10))]


def _web_processes() -> int:
    """Return how many processes answer: a thread does not help another to compute, a process does."""
    return env.number("WEB_CONCURRENCY", min(4, max(2, (os.cpu_count() or 1) // 2)))


def _servers() -> list[Program]:
    found = []
    logs = embedded.data_dir() / "logs"
    if not os.environ.get("DATABASE_URL"):
        found.append(
            Program(
                name="postgres",
                command=embedded.prepare_postgres(),
                group=SERVERS,
                stop_signal="INT",  # "fast": ends sessions, keeps the data
                user=embedded.server_user(),
                log=str(logs / "postgres.log"),
            )
        )
    if not os.environ.get("REDIS_URL"):
        found.append(
            Program(
                name="redis",
                command=embedded.prepare_redis(),
                group=SERVERS,
                log=str(logs / "redis.log"),
            )
        )
    return found


def configuration(members: list[Program]) -> str:
    """Return supervisord's configuration: programs in two groups, control by a private socket."""
    folder = embedded.data_dir()
    logs = folder / "logs"
    logs.mkdir(exist_ok=True)
    sections: dict[str, dict[str, object]] = {
        "supervisord": {
            "nodaemon": "true",
            "silent": "true",
            "logfile": logs / "supervisord.log",
            "pidfile": folder / "supervisord.pid",
            **({"user": "root"} if os.geteuid() == 0 else {}),
        },
        "unix_http_server": {"file": control_socket(), "chmod": "0700"},
        "rpcinterface:supervisor": {
            "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"
        },
        **{f"program:{program.name}": program.section() for program in members},
    }
    # a group is stopped all at once, the last one first: the servers outlive those that use them
    for priority, group in enumerate((SERVERS, APPLICATION), start=1):
        if names := [program.name for program in members if program.group == group]:
            sections[f"group:{group}"] = {"programs": ",".join(names), "priority": priority}
    parser = RawConfigParser()
    parser.read_dict(
        {
            name: {key: str(value).replace("%", "%%") for key, value in section.items()}
            for name, section in sections.items()
        }
    )
    text = StringIO()
    parser.write(text)
    return text.getvalue()


def control_socket() -> Path:
    """Return the socket by which supervisord is controlled."""
    return embedded.socket_dir() / "supervisor.sock"


def control() -> ServerProxy:
    """Return supervisord's remote interface."""
    transport = SupervisorTransport(None, None, f"unix://{control_socket()}")
    return ServerProxy("http://127.0.0.1", transport=transport)


def _quoted(part: str) -> str:
    return f'"{part}"' if " " in part else part
