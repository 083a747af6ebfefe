"""`manage.py size`: calculates what an installation needs for a load."""

import json
from argparse import ArgumentParser
from dataclasses import asdict, fields
from typing import Any

from django.core.management.base import BaseCommand

from orchestration.console.statistics.sizing import BUSY, Load, Size, size

ROWS = (
    ("schedulers", "{0.schedulers} processes"),
    ("workers of each agent", "{0.agent_workers}, for a window of {0.window}"),
    ("processes in all", "{0.processes}, {0.memory_mb:,} MB; web processes come on top"),
    ("connections to Postgres", "{0.connections}, one more than it has queues for each process"),
    ("rows of a task", "{0.rows_per_task:.0f}"),
)


class Command(BaseCommand):
    """Prints cores, processes, connections, disk and what to add; needs no database."""

    help = "Calculate what an installation needs. The costs were measured by `make size`."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options: the fields of a load."""
        add = parser.add_argument
        add("--tasks-per-second", type=float, required=True, help="at the peak")
        add("--steps", type=int, default=5, help="of a task (default: 5)")
        add("--average", type=float, help="tasks/s over a month (default: as at the peak)")
        add("--agents", type=int, help="that share the steps (default: one for each step)")
        add("--latency", type=float, default=0.3, help="seconds of an answer (default: 0.3)")
        add("--calls-per-second", type=float, help="that one service allows")
        add("--retention", dest="retention_days", type=float, default=365.0, help="days")
        add("--payload", type=int, default=500, help="bytes of an input or request (default: 500)")
        add("--slots", type=int, default=100, help="requests of one worker at once (default: 100)")
        add("--json", action="store_true", help="print the result as JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        """Calculate and print."""
        load = Load(**{field.name: options[field.name] for field in fields(Load)})
        result = size(load)
        if options["json"]:
            self.stdout.write(json.dumps(asdict(result), indent=2))
            return
        for name, value in _lines(result):
            self.stdout.write(f"{name:<28}{value}")
        for sentence in result.advice:
            self.stdout.write(f"- {sentence}")


def _lines(result: Size) -> list[tuple[str, str]]:
    return [
        ("tasks/s", f"{result.tasks_per_second:,.0f}"),
        *(
            (f"cores of {name}", f"{cores:.1f}, each {BUSY:.0%} busy")
            for name, cores in result.cores.items()
        ),
        *((name, text.format(result)) for name, text in ROWS),
        ("stored for a task", _bytes(result.bytes_per_task)),
        ("WAL of a task", _bytes(result.wal_per_task)),
        (
            "WAL",
            f"{_bytes(result.wal_per_second)}/s at the peak, {_bytes(result.wal_per_day)} a day",
        ),
        ("disk", f"{_bytes(result.disk_per_month)} a month, {_bytes(result.disk)} in all"),
        ("Redis", _bytes(result.redis_bytes)),
        ("one gate", f"{result.gate_limit:,.0f} steps/s of one agent at most"),
    ]


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:,.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"
