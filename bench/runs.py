"""The runs of `python -m bench`, and their results."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.console import progress
from bench.measure import REMOTE, middle, missed, own_cost, percentile, ratio, size_of_run
from bench.session import Session, session
from bench.systems import ENGINE, FAMILIES, LIMIT, PEERS, PREPARE, System, engine, order
from bench.testbed import Testbed


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The amounts of a benchmark; times in seconds."""

    rounds: int = 3
    seconds: float = 5.0  # of a run under backlog
    idle_tasks: int = 40
    paced_seconds: float = 5.0
    small: int = 1_000
    large: int = 50_000
    small_runs: int = 3  # before the large one, and again after it


QUICK = Plan(rounds=1, seconds=2.0, idle_tasks=15, paced_seconds=2.0, large=5_000, small_runs=1)


@dataclass
class Findings:
    """All measurements of one system."""

    system: System
    rates: list[float] = field(default_factory=list)
    cpu: list[dict[str, float]] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)
    half: list[float] = field(default_factory=list)
    memory: float = 0.0
    repeated: int = 0  # calls made more than once

    @property
    def rate(self) -> float:
        """Return tasks/s: the median of the runs."""
        return median(self.rates)

    def as_data(self) -> dict[str, Any]:
        """Return the published figures."""
        return {
            "label": self.system.label,
            "family": self.system.family,
            "durable": self.system.durable,
            "tasks_per_second": self.rate,
            "tasks_per_second_best": max(self.rates),
            "tasks_per_second_of_each_run": self.rates,
            "cpu_ms_per_task": middle(self.cpu),
            "idle_ms": _latency(self.idle),
            "half_load_ms": _latency(self.half),
            "peak_memory_mb": self.memory,
            "repeated_calls": self.repeated,
        }


class Benchmark:
    """Runs a plan on a testbed."""

    def __init__(self, bed: Testbed, plan: Plan, only: str | None) -> None:
        self.bed, self.plan, self.only = bed, plan, only
        self.findings: dict[str, Findings] = {}
        self.flat: dict[str, Any] | None = None
        self.load = load()

    def run(self) -> dict[str, Any]:
        """Measure everything; return the results."""
        for family in FAMILIES:
            if family in PREPARE and self.only in (None, family):
                part = PREPARE[family]
                self.bed.run(part.command, part.environment)
        for number in range(1, self.plan.rounds + 1):
            for system in order(number, self.only):
                self._visit(system, number)
        if self.only in (None, ENGINE):
            self._flatness()
        return self._results()

    def _visit(self, system: System, number: int) -> None:
        """Start a system, load it, stop it; in the last round also apply lighter loads once."""
        findings = self.findings.setdefault(system.name, Findings(system))
        with session(self.bed, system) as running:
            warm, _ = running.backlog(system.warm_up)
            warm, _ = running.backlog(system.warm_up)
            self.bed.checkpoint()
            tasks = size_of_run(warm, self.plan.seconds)
            rate, cpu = running.backlog(tasks)
            findings.rates.append(rate)
            findings.cpu.append(cpu)
            progress(f"round {number}: {system.label}: {rate:.0f} tasks/s ({tasks} tasks)")
            if number == self.plan.rounds and not findings.idle:
                self._latencies(running, findings)
            findings.memory = max(findings.memory, running.memory())
            findings.repeated += running.repeated

    def _latencies(self, running: Session, findings: Findings) -> None:
        half = findings.rate / 2
        findings.idle = running.idle(self.plan.idle_tasks)
        findings.half = running.paced(size_of_run(half, self.plan.paced_seconds, 10), half)
        idle, loaded = _latency(findings.idle), _latency(findings.half)
        progress(f"  latency p50 {idle['p50']:.0f} ms at idle, {loaded['p50']:.0f} ms at half load")

    def _flatness(self) -> None:
        """Compare the cost of a task in small batches and in a large one."""
        sizes = [self.plan.small] * self.plan.small_runs
        sizes = [*sizes, self.plan.large, *sizes]
        costs: dict[int, list[float]] = {}
        rates: dict[int, list[float]] = {}
        system = engine()
        with session(self.bed, system) as running:
            running.backlog(system.warm_up)
            self.bed.checkpoint()
            for size in sizes:
                rate, cpu = running.backlog(size)
                cost = own_cost(cpu)
                costs.setdefault(size, []).append(cost)
                rates.setdefault(size, []).append(rate)
                progress(f"batch of {size}: {cost:.2f} ms of CPU per task, {rate:.0f} tasks/s")
        small, large = median(costs[self.plan.small]), median(costs[self.plan.large])
        self.flat = {
            "tasks": [self.plan.small, self.plan.large],
            "cpu_ms_per_task": [small, large],
            "tasks_per_second": [median(rates[self.plan.small]), median(rates[self.plan.large])],
            "ratio": large / small,
        }

    def _results(self) -> dict[str, Any]:
        engine_found = self.findings.get(ENGINE)
        idle = percentile(engine_found.idle, 0.5) if engine_found else None
        of_medians = self._ratio(lambda findings: findings.rate)
        return {
            "machine": {"cores": os.cpu_count(), "load_before": self.load, "load_after": load()},
            "systems": {name: findings.as_data() for name, findings in self.findings.items()},
            "ratio": of_medians,
            "ratio_of_best_runs": self._ratio(lambda findings: max(findings.rates)),
            "share_of_limit": self._share(),
            "idle_p50_without_remote_calls_ms": None if idle is None else idle - REMOTE,
            "flatness": self.flat,
            "missed": missed(
                of_medians,
                idle=idle,
                half=_latency(engine_found.half) if engine_found else None,
                flat=self.flat["ratio"] if self.flat else None,
            ),
        }

    def _share(self) -> float | None:
        """Return this engine's tasks/s as a share of those of the calls alone."""
        if not {ENGINE, LIMIT} <= self.findings.keys():
            return None
        return self.findings[ENGINE].rate / self.findings[LIMIT].rate

    def _ratio(self, of: Callable[[Findings], float]) -> dict[str, float | None]:
        """Return this engine's figure over that of the best peer of each kind, where one was measured.

        `durable`: the engines of durable workflows. `any`: these, and chains that are not durable.
        `queue`: the bare durable queues, which know no tasks.
        """
        if ENGINE not in self.findings:
            return dict.fromkeys(PEERS)
        own = of(self.findings[ENGINE])
        return {
            kind: ratio(
                own,
                [of(peer) for peer in self.findings.values() if peer.system.family in families],
            )
            for kind, families in PEERS.items()
        }


def _latency(values: list[float]) -> dict[str, float]:
    return {"p50": percentile(values, 0.5), "p95": percentile(values, 0.95)}


def load() -> float:
    """Return the machine's load average over the last minute."""
    return os.getloadavg()[0]
