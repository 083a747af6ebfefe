"""The processes of a stack, and the configuration by which supervisord keeps them running."""

import os
import shlex
import sys
from configparser import RawConfigParser
from dataclasses import dataclass
from io import StringIO
from math import ceil
from pathlib import Path
from xmlrpc.client import ServerProxy

from supervisor.xmlrpc import SupervisorTransport

from orchestration import registry
from orchestration.messaging import queue_names
from orchestration.models import Policy

from .. import env
from . import embedded, folders

SERVERS, APPLICATION, ONCE = "servers", "application", "once"
LONGEST_LOG = "10MB"  # of one process; one older file of that length is kept
# served by at least two processes, to show that several may run
TWICE = ("scheduler", "payment")
WITH = {
    "courier": "shipping"
}  # queues with little to do, each with the one whose process serves it
COPIES = "COPIES"  # how many of each worker and leader run, at least: an environment variable
LEADERS = {"supervisor": 2, "housekeeper": 1}  # how many of each run, at least; one of each leads
SETUP, DEMO = "setup", "demo"  # they come to an end, and are not started again
USUAL = 10.0  # seconds for which a process may finish what it has begun
CHECKPOINT = 60.0  # and Postgres what it has to write
SPARE = 5.0  # beyond what an agent's attempt is allowed


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `make run`.

    `local`: no other machine reaches `host`. `shown`: a person reads what is printed.
    """

    host: str
    port: int
    sandbox_port: int
    demo: bool
    local: bool
    shown: bool

    def arguments(self) -> list[str]:
        """Return the options as command-line arguments."""
        options = [
            f"--host={self.host}",
            f"--port={self.port}",
            f"--sandbox-port={self.sandbox_port}",
        ]
        return options + [f"--{name}" for name in ("demo", "local", "shown") if getattr(self, name)]


@dataclass(frozen=True, kw_only=True)
class Program:
    """One process of the stack."""

    name: str
    command: list[str]
    group: str = APPLICATION
    stop_signal: str = "TERM"
    background: bool = False  # no person waits for its answer: the others go first
    user: str | None = None
    begins: bool = False  # with the manager, not when it is asked to
    merged: bool = True  # its output is shown in the one log of all processes, too
    patience: float = USUAL  # seconds it may take to end; then it is killed

    def section(self) -> dict[str, object]:
        """Return the program's part of supervisord's configuration."""
        niceness = env.number("NICENESS", 10) if self.background else 0
        section: dict[str, object] = {
            "command": shlex.join(self.command),
            "directory": folders.PROJECT if self.user is None else "/",
            "environment": f'PROCESS="{self.name}",NICENESS="{niceness}"',
            "autostart": _word(self.begins),
            # a program that ends is always restarted at once; "up" means "started"
            "autorestart": _word(self.group != ONCE),
            "startsecs": 0,
            "stopsignal": self.stop_signal,
            "stopwaitsecs": ceil(self.patience),
            "killasgroup": "true",
            "redirect_stderr": "true",
            "stdout_logfile": log_file(self.name),
            "stdout_logfile_maxbytes": LONGEST_LOG,
            "stdout_logfile_backups": 1,
            "stdout_events_enabled": _word(self.merged),
        }
        return section | ({"user": self.user} if self.user else {})


def programs(options: Options) -> list[Program]:
    """Return every process of a stack: servers (unless they are elsewhere), web, workers, sandbox.

    With `demo` also customers, who come as soon as the switch on the sandbox's page says so.
    """
    python = sys.executable
    manage = [python, str(folders.PROJECT / "manage.py")]
    host = f"[{options.host}]" if ":" in options.host else options.host
    web = [python, "-m", "gunicorn", "sasweb.wsgi", "--bind", f"{host}:{options.port}"]
    web += ["--workers", str(_web_processes()), "--log-level", "warning"]
    sandbox = [python, "-m", "sandbox", "--port", str(options.sandbox_port)]
    sandbox += ["--data", str(folders.make(folders.data_dir() / "sandbox"))]
    sandbox += ["--webhooks", f"http://localhost:{options.port}/hooks/payment/"]
    setup = [python, "-m", "sasweb.stack.setup", *options.arguments()]
    return [
        *_servers(),
        Program(name=SETUP, command=setup, group=ONCE, begins=True),
        Program(name="sandbox", command=sandbox),
        Program(name="web", command=web),
        *(
            Program(
                name=name,
                command=[
                    *manage,
                    "work",
                    queue,
                    *(other for other in WITH if WITH[other] == queue),
                ],
                background=True,
                patience=patience(queue),
            )
            for queue in queue_names.declared()
            if queue not in WITH
            for name in workers(queue)
        ),
        *(
            Program(name=name, command=[*manage, kind], background=True)
            for kind, least in LEADERS.items()
            for name in copies(kind, least)
        ),
        *(_customers(manage) if options.demo else []),
    ]


def workers(queue: str) -> list[str]:
    """Return the names of the processes that serve a queue."""
    return copies(f"work-{queue}", 2 if queue in TWICE else 1)


def copies(name: str, least: int) -> list[str]:
    """Return the names of the processes of one kind: numbered, if there are several."""
    count = max(least, env.number(COPIES, 1))
    return [f"{name}-{number}" for number in range(1, count + 1)] if count > 1 else [name]


def patience(queue: str) -> float:
    """Return how long a queue's worker may take to end: an agent's finishes its attempts."""
    agent = registry.agents.get(queue)
    return Policy(**agent.policy).time_allowed + SPARE if agent else USUAL


def _customers(manage: list[str]) -> list[Program]:
    """Return who orders: later, as the switch says, and once at the start, in every state."""
    traffic = [*manage, "demo_traffic", "--switch"]
    first = [*manage, "demo_orders", "--first"]
    return [
        Program(name="customers", command=traffic, background=True),
        Program(name=DEMO, command=first, group=ONCE, background=True, merged=False),
    ]


def _web_processes() -> int:
    """Return how many processes answer: a thread does not help another to compute, a process does."""
    return env.number("WEB_CONCURRENCY", min(4, max(2, (os.cpu_count() or 1) // 2)))


def _servers() -> list[Program]:
    servers = []
    if not env.text("DATABASE_URL"):
        servers.append(
            Program(
                name="postgres",
                command=embedded.prepare_postgres(),
                group=SERVERS,
                stop_signal="INT",  # "fast": ends sessions, keeps the data
                patience=CHECKPOINT,
                user=folders.server_user(),
                begins=True,
                merged=False,
            )
        )
    if not env.text("REDIS_URL"):
        servers.append(
            Program(
                name="redis",
                command=embedded.prepare_redis(),
                group=SERVERS,
                user=folders.server_user(),
                begins=True,
                merged=False,
            )
        )
    return servers


def configuration(members: list[Program]) -> str:
    """Return supervisord's configuration: programs in groups, control by a private socket."""
    logs = folders.make(folders.data_dir() / "logs")
    sections: dict[str, dict[str, object]] = {
        "supervisord": {
            "nodaemon": "true",
            "silent": "true",
            "logfile": logs / "supervisord.log",
            "pidfile": folders.data_dir() / "supervisord.pid",
            **({"user": "root"} if os.geteuid() == 0 else {}),
        },
        "unix_http_server": {"file": control_socket(), "chmod": "0700"},
        "rpcinterface:supervisor": {
            "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"
        },
        **{f"program:{program.name}": program.section() for program in members},
    }
    # a group is stopped all at once, the last one first: the servers outlive those that use them
    for priority, group in enumerate((SERVERS, APPLICATION, ONCE), start=1):
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


def log_file(name: str) -> Path:
    """Return where a process's own log is kept."""
    return folders.data_dir() / "logs" / f"{name}.log"


def control_socket() -> Path:
    """Return the socket by which supervisord is controlled."""
    return folders.socket_dir() / "supervisor.sock"


def control() -> ServerProxy:
    """Return supervisord's remote interface."""
    transport = SupervisorTransport(None, None, f"unix://{control_socket()}")
    return ServerProxy("http://127.0.0.1", transport=transport)


def _word(yes: bool) -> str:
    return "true" if yes else "false"
