"""The needs of an installation for a load, calculated from measured costs, without a database.

`MEASURED` is printed by `make size`: run it on your machine, and compare.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a task takes: a part of its own, and one for each step."""

    task: float
    step: float

    def of(self, steps: float) -> float:
        """Return what a task with that number of steps takes."""
        return self.task + self.step * steps


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Milliseconds of a core; rows; bytes. Of a turn: milliseconds for it and for each reply in it.

    `turn_before` is until it asks for the gate, `turn_held` from then to the end of the commit.
    """

    postgres: Cost
    scheduler: Cost
    agent: Cost
    submission: Cost
    redis: Cost
    rows: Cost
    stored: Cost
    wal: Cost
    turn_before: Cost
    turn_held: Cost


# Two cores, Postgres 18, fsync on, inputs of some 30 bytes: `make size`.
MEASURED = Costs(
    postgres=Cost(task=0.045, step=0.117),
    scheduler=Cost(task=0.0, step=0.08),
    agent=Cost(task=0.01, step=0.14),
    submission=Cost(task=0.03, step=0.006),
    redis=Cost(task=0.0, step=0.012),
    rows=Cost(task=1, step=2),
    stored=Cost(task=1_530, step=700),
    wal=Cost(task=2_890, step=2_430),
    turn_before=Cost(task=1.3, step=0.18),
    turn_held=Cost(task=1.7, step=0.032),
)
BUSY = 0.6  # of a core: more leaves no room for a burst, or for another that fails
ENVELOPE = 500  # bytes of a request on Redis, without its payload
PROCESS_MB = 80
MANY_CORES, MANY_CONNECTIONS, MUCH_DISK = 32, 200, 1e12
OTHERS = 6  # processes: two supervisors, two housekeepers, alerts, audit
DAY = 86_400


@dataclass(frozen=True, kw_only=True)
class Load:
    """What is asked for; times in seconds.

    `tasks_per_second` at the peak, `average` over a month. `payload` is the bytes of a task's input, and of a
    step's request. `latency` is of a service's answer, `calls_per_second` what one service allows.
    """

    tasks_per_second: float
    steps: int = 5
    average: float | None = None
    agents: int | None = None
    latency: float = 0.3
    calls_per_second: float | None = None
    retention_days: float = 365.0
    payload: int = 500
    slots: int = 100


@dataclass(frozen=True, kw_only=True)
class Size:
    """What the load takes: cores, processes, connections, bytes; and sentences on what to add."""

    tasks_per_second: float
    cores: dict[str, float]
    schedulers: int
    agent_workers: int
    window: int
    processes: int
    connections: int
    memory_mb: int
    rows_per_task: float
    bytes_per_task: float
    wal_per_task: float
    wal_per_second: float
    wal_per_day: float
    disk_per_month: float
    disk: float
    redis_bytes: float
    gate_limit: float
    advice: list[str]


def size(load: Load, costs: Costs = MEASURED) -> Size:
    """Return the size of an installation for a load."""
    agents = load.agents or load.steps
    allowed = math.inf if load.calls_per_second is None else load.calls_per_second
    rate = min(load.tasks_per_second, allowed * agents / load.steps)
    calls = rate * load.steps / agents  # of one agent
    cores = {
        name: rate * cost.of(load.steps) / 1000 / BUSY
        for name, cost in (
            ("Postgres", costs.postgres),
            ("schedulers", costs.scheduler),
            ("agents", costs.agent),
            ("submission", costs.submission),
            ("Redis", costs.redis),
        )
    }
    window = math.ceil(calls * load.latency * 1.5)
    schedulers = max(2, math.ceil(cores["schedulers"]))
    workers = max(2, math.ceil(window / load.slots), math.ceil(cores["agents"] / agents))
    processes = schedulers + agents * workers + 2 * max(1, math.ceil(cores["submission"])) + OTHERS
    stored = costs.stored.of(load.steps) + load.payload * (1 + load.steps)
    # a request is written when its step is made, and again with its values when its turn has come
    wal = costs.wal.of(load.steps) + load.payload * (1 + 2 * load.steps)
    average = load.average or rate
    result = Size(
        tasks_per_second=rate,
        cores=cores,
        schedulers=schedulers,
        agent_workers=workers,
        window=window,
        processes=processes,
        connections=2 * processes,
        memory_mb=processes * PROCESS_MB,
        rows_per_task=costs.rows.of(load.steps),
        bytes_per_task=stored,
        wal_per_task=wal,
        wal_per_second=rate * wal,
        wal_per_day=average * wal * DAY,
        disk_per_month=average * stored * DAY * 30,
        disk=average * stored * DAY * load.retention_days,
        redis_bytes=rate * load.steps * load.latency * (ENVELOPE + load.payload),
        gate_limit=1000 * 200 / costs.turn_held.of(200),
        advice=[],
    )
    result.advice.extend(_advice(load, result, calls))
    return result


def _advice(load: Load, result: Size, calls: float) -> list[str]:
    """Return a sentence on each thing to add."""
    sentences = []
    if result.tasks_per_second < load.tasks_per_second:
        sentences.append(
            f"The service bounds it: {load.calls_per_second:g} calls/s allow "
            f"{result.tasks_per_second:.0f} tasks/s. More machines do not help."
        )
    if calls > result.gate_limit * BUSY:
        sentences.append(
            f"One gate serves some {result.gate_limit:,.0f} steps/s: divide the agent's service into "
            "several agents."
        )
    if result.cores["Postgres"] > MANY_CORES:
        sentences.append(
            "One Postgres is too small: divide by region or tenant into installations of their own."
        )
    elif result.cores["Postgres"] > 2:
        sentences.append("Give Postgres a machine of its own, with a standby of the same size.")
    if result.connections > MANY_CONNECTIONS:
        sentences.append(
            "Put PgBouncer in transaction mode in front of Postgres (TRANSACTION_POOLER=1), or serve "
            "several queues in one process."
        )
    if result.disk > MUCH_DISK:
        sentences.append("Keep ended tasks for a shorter time, or write them to files.")
    if result.cores["Redis"] > 1:
        sentences.append("One Redis has one core: divide by region or tenant.")
    return sentences
