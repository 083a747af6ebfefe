"""Arithmetic on measurements, the targets, and readings of /proc."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

TICK = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")

# The targets: ratios of throughput, latencies in ms, ratio of costs.
RATIOS = {"durable": 6.0, "any": 4.0, "queue": 1.0}
IDLE, FLAT = 55.0, 1.1
HALF = {"p50": 100.0, "p95": 180.0}
BESIDE = {"client", "sandbox"}  # what loads an engine, and what it calls
REMOTE = 30.0  # ms of a task's latency that are the three remote calls themselves


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile: `share` of the values do not exceed it."""
    if not values:
        raise ValueError("a percentile needs values, and got nothing")
    rank = math.ceil(share * len(values))
    return sorted(values)[max(rank, 1) - 1]


def ratio(own: float, peers: Iterable[float]) -> float | None:
    """Return `own` over the best of the peers; None without peers."""
    best = max(peers, default=0.0)
    return own / best if best else None


def per_task(
    before: Mapping[str, float], after: Mapping[str, float], tasks: int
) -> dict[str, float]:
    """Return ms of CPU per task and kind of process, from two readings in seconds."""
    return {kind: (after[kind] - before[kind]) * 1000 / tasks for kind in after}


def middle(readings: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each kind over several runs."""
    kinds = readings[0] if readings else {}
    return {kind: median(reading[kind] for reading in readings) for kind in kinds}


def own_cost(costs: Mapping[str, float]) -> float:
    """Return the ms of CPU that belong to an engine, its database and Redis included."""
    return sum(ms for kind, ms in costs.items() if kind not in BESIDE)


def size_of_run(rate: float, seconds: float, step: int = 50) -> int:
    """Return the number of tasks that take about `seconds` at `rate` per second."""
    return max(step, round(rate * seconds / step) * step)


def missed(
    ratios: Mapping[str, float | None],
    *,
    idle: float | None = None,
    half: Mapping[str, float] | None = None,
    flat: float | None = None,
) -> list[str]:
    """Return a sentence for each missed target; a figure is None if it was not measured.

    `half` are the percentiles p50 and p95 of the latency at half load, in ms like `idle`.
    """
    sentences = [
        f"Throughput is {value:.2f} times that of the best peer ({kind}); the target is {RATIOS[kind]:g}."
        for kind, value in ratios.items()
        if value is not None and value < RATIOS[kind]
    ]
    if idle is not None and idle > IDLE:
        sentences.append(f"Idle latency is {idle:.0f} ms at the median; the target is {IDLE:g} ms.")
    sentences += [
        f"Latency at half load is {half[share]:.0f} ms ({share}); the target is {limit:g} ms."
        for share, limit in HALF.items()
        if half is not None and half[share] > limit
    ]
    if flat is not None and flat > FLAT:
        sentences.append(
            f"A task of 50,000 costs {flat:.2f} times a task of 1,000; the target is at most {FLAT:g}."
        )
    return sentences


def tree(pid: int) -> list[int]:
    """Return the ids of a process and its descendants."""
    pids = [pid]
    for each in pids:
        try:
            for task in (PROC / str(each) / "task").iterdir():
                pids.extend(int(child) for child in (task / "children").read_text().split())
        except OSError:
            continue
    return pids


def cpu_seconds(pid: int) -> float:
    """Return seconds of CPU of a process and its descendants, ended ones included."""
    ticks = 0
    for each in tree(pid):
        try:
            fields = (PROC / str(each) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])  # utime stime cutime cstime
    return ticks / TICK


def peak_memory(pid: int) -> float:
    """Return the sum of the peak resident sizes of a process and its descendants, in MB."""
    size = 0
    for each in tree(pid):
        try:
            status = (PROC / str(each) / "status").read_text()
        except OSError:
            continue
        size += sum(
            int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")
        )
    return size / 1024


def run_seconds(pid: int) -> float:
    """Return seconds of CPU of a process and its living descendants, to the nanosecond.

    For idle processes: ticks are too coarse for many that run for moments only.
    """
    nanoseconds = 0
    for each in tree(pid):
        for task in (PROC / str(each) / "task").glob("*/schedstat"):
            with suppress(OSError):
                nanoseconds += int(task.read_text().split()[0])
    return nanoseconds / 1e9


def memory(pid: int) -> float:
    """Return the memory of a process and its descendants in MB; shared pages count once (PSS)."""
    size = 0
    for each in tree(pid):
        with suppress(OSError):
            rollup = (PROC / str(each) / "smaps_rollup").read_text().splitlines()
            size += next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
    return size / 1024
