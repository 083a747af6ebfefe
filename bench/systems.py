"""The compared systems: their processes and clients."""

import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FAMILIES = ("engine", "dbos", "celery", "pgqueuer", "limit")
ENGINE, DBOS, CELERY, PGQUEUER, LIMIT = FAMILIES
# Whom each ratio compares this engine with.
PEERS = {"durable": {DBOS}, "any": {DBOS, CELERY}, "queue": {PGQUEUER}}
PYTHON = sys.executable
SECRET_KEY = secrets.token_urlsafe(48)
PEERS_VENV = Path(__file__).parent.parent / ".bench" / "venv"
PEERS_PYTHON = str(PEERS_VENV / "bin" / "python")


@dataclass(frozen=True, kw_only=True)
class Part:
    """One process of a system; the results sum up parts of the same kind."""

    kind: str
    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class System:
    """One way to run three calls per task."""

    name: str
    label: str
    family: str
    durable: bool
    database: str = ""  # vacuumed after the system has stopped
    warm_up: int  # tasks before the measurements; their rate determines the size of the runs
    workers: list[Part]
    clients: list[Part]  # several share each load equally
    calls: int = 3  # of a task

    @property
    def inside(self) -> bool:
        """Return whether the clients are also the workers."""
        return not self.workers


def _django(process: str) -> dict[str, str]:
    return {
        "DJANGO_SETTINGS_MODULE": "bench.settings",
        "PROCESS": process,
        "SECRET_KEY": SECRET_KEY,
    }


def engine(schedulers: int = 1, agents: int = 1, calls: int = 3, *, flows: bool = False) -> System:
    """Return this engine: one process of each kind, unless more are asked for."""
    manage, more = [PYTHON, "manage.py"], {"AGENTS": str(agents), "STEPS": str(calls)}
    if flows:
        more["FLOWS"] = "yes"
    parts = [("submission", "submission"), *[("scheduler", "scheduler")] * schedulers]
    parts += [("agent", caller(number)) for number in range(1, agents + 1)]
    return System(
        name="engine",
        label="this engine",
        family=ENGINE,
        durable=True,
        database="sas",
        warm_up=500,
        calls=calls,
        workers=[
            *(
                Part(
                    kind=kind,
                    command=[*manage, "work", queue, "--skip-checks"],
                    environment=_django(kind) | more,
                )
                for kind, queue in parts
            ),
            *(
                Part(kind=kind, command=[*manage, kind], environment=_django(kind) | more)
                for kind in ("supervisor", "housekeeper")
            ),
        ],
        clients=[
            Part(
                kind="client",
                command=[PYTHON, "-m", "bench.engine.client"],
                environment=_django("client") | more,
            )
        ],
    )


def caller(number: int) -> str:
    """Return the name of an agent of this engine, counted from 1."""
    return "caller" if number == 1 else f"caller_{number}"


def dbos_direct(processes: int) -> System:
    """Return DBOS with workflows started in the processes that run them."""
    return System(
        name=f"dbos-direct-{processes}",
        label=f"DBOS, direct, {_count(processes, 'process', 'processes')}",
        family=DBOS,
        durable=True,
        database="bench_dbos",
        warm_up=100 * processes,
        workers=[],
        clients=[
            Part(
                kind="worker",
                command=[PEERS_PYTHON, "-m", "bench.peers.dbos_direct"],
                environment={"EXECUTOR": str(number)},
            )
            for number in range(processes)
        ],
    )


def dbos_queue(processes: int) -> System:
    """Return DBOS with workflows enqueued by a client and run by workers."""
    return System(
        name=f"dbos-queue-{processes}",
        label=f"DBOS, queue, {_count(processes, 'process', 'processes')}",
        family=DBOS,
        durable=True,
        database="bench_dbos",
        warm_up=100 * processes,
        workers=[
            Part(
                kind="worker",
                command=[PEERS_PYTHON, "-m", "bench.peers.dbos_app", "worker"],
                environment={"EXECUTOR": str(number)},
            )
            for number in range(processes)
        ],
        clients=[Part(kind="client", command=[PEERS_PYTHON, "-m", "bench.peers.dbos_queue"])],
    )


def celery(workers: int) -> System:
    """Return Celery with workers of the pool that is fastest for their number."""
    command = [PEERS_PYTHON, "-m", "celery", "--app", "bench.peers.celery_app", "worker"]
    command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    command += ["--loglevel", "WARNING", *POOLS[workers]]
    return System(
        name=f"celery-{workers}",
        label=f"Celery chain, {_count(workers, 'worker', 'workers')} ({POOLS[workers][1]})",
        family=CELERY,
        durable=False,
        warm_up=100 * workers,
        workers=[
            Part(kind="worker", command=[*command, "--hostname", f"bench{number}@%h"])
            for number in range(workers)
        ],
        clients=[Part(kind="client", command=[PEERS_PYTHON, "-m", "bench.peers.celery_client"])],
    )


def pgqueuer(processes: int, way: str) -> System:
    """Return PgQueuer; `way` is how a job enqueues the next: individually, or batched."""
    ways = {"each": "one enqueue per job", "batched": "follow-ups in batches of 5 ms"}
    return System(
        name=f"pgqueuer-{way}",
        label=f"PgQueuer, {ways[way]}, {_count(processes, 'process', 'processes')}",
        family=PGQUEUER,
        durable=True,
        database="bench_dbos",
        warm_up=100 * processes,
        workers=[
            Part(kind="worker", command=[PEERS_PYTHON, "-m", "bench.peers.pgqueuer_app", way])
            for _ in range(processes)
        ],
        clients=[Part(kind="client", command=[PEERS_PYTHON, "-m", "bench.peers.pgqueuer_client"])],
    )


def limit(processes: int) -> System:
    """Return the calls alone: what no system on this machine can exceed."""
    return System(
        name=LIMIT,
        label=f"the calls alone, {_count(processes, 'process', 'processes')}",
        family=LIMIT,
        durable=False,
        warm_up=500,
        workers=[],
        clients=[
            Part(
                kind="worker",
                command=[PYTHON, "-m", "bench.engine.limit"],
                environment=_django("client"),
            )
        ]
        * processes,
    )


POOLS = {
    1: ["--pool", "prefork", "--concurrency", "16", "--prefetch-multiplier", "1"],
    2: ["--pool", "gevent", "--concurrency", "50", "--prefetch-multiplier", "4"],
}

PREPARE = {
    ENGINE: Part(
        kind="migrate",
        command=[PYTHON, "manage.py", "migrate", "--verbosity", "0", "--skip-checks"],
        environment=_django("migrate"),
    ),
    DBOS: Part(kind="migrate", command=[PEERS_PYTHON, "-m", "bench.peers.dbos_app"]),
    PGQUEUER: Part(kind="migrate", command=[PEERS_PYTHON, "-m", "bench.peers.pgqueuer_app"]),
}


def order(number: int, only: str | None) -> list[System]:
    """Return a round: the systems that the ratios need twice, slower ones in every other round."""
    round_ = [engine(), dbos_direct(2), celery(2), pgqueuer(2, "batched"), dbos_queue(2)] * 2
    if number % 2:
        round_ += [pgqueuer(2, "each"), dbos_direct(1), celery(1), dbos_queue(1), limit(2)]
    return [system for system in round_ if only in (None, system.family)]


def _count(number: int, noun: str, plural: str) -> str:
    return f"{number} {noun if number == 1 else plural}"
