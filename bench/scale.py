"""`python -m bench.scale`: what a claim and a sweep cost beside a million tasks that wait.

A fifth of them is then held, and released: neither may make a claim or a sweep dearer. What counts is
the CPU of this process and of the database's that serves it: others may use the machine meanwhile.
Keeps its database in DATA_DIR/scale (some GB).
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median

from bench import filled
from bench.filled import say
from sasweb.stack import folders

FOLDER = folders.data_dir() / "scale"
AGENT = "inventory"  # the first step of each task is its
RATIO, SWEEP = 1.2, 100.0  # the limits: times what it was before; ms


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Medians: milliseconds of CPU, and by the clock."""

    cpu: float
    clock: float


def main() -> int:
    """Fill the database, measure, print the table; return 1 past the limits."""
    options = parse_options()
    with filled.database(FOLDER, fresh=True):
        prepare(options.tasks)
        costs = {"before": _measure(options.rounds)}
        tasks = _oldest(options.held)
        _on_each(tasks, _hold, "held")
        _settle()
        costs["held"] = _measure(options.rounds)
        _on_each(tasks, _release, "released")
        _settle()
        costs["released"] = _measure(options.rounds)
    print(f"| {options.tasks:,} tasks wait, {options.held:,} are | {' | '.join(ACTS)} |")
    print(f"| --- |{' --: |' * len(ACTS)}")
    for name, cost in costs.items():
        figures = (f"{one.cpu:.1f} ({one.clock:.1f})" for one in cost.values())
        print(f"| {name} | {' | '.join(figures)} |")
    print("Milliseconds of CPU, and by the clock.")
    ratios = {
        f"{act}_{name}": costs[name][act].cpu / costs["before"][act].cpu
        for act in ("claim", "sweep")
        for name in ("held", "released")
    }
    million = costs["before"]["sweep"].cpu
    words = [f"{name}={ratio:.2f}" for name, ratio in ratios.items()]
    print(f"scale {' '.join(words)} sweep_million_ms={million:.1f}")
    return 1 if max(ratios.values()) > RATIO or million > SWEEP else 0


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000, help="how many wait")
    parser.add_argument("--held", type=int, default=200_000, help="how many of them are held")
    parser.add_argument("--rounds", type=int, default=30, help="of each, for the median")
    return parser.parse_args()


def prepare(tasks: int) -> None:
    """Fill an empty database with tasks that wait, half of them for the time of a retry."""
    from bench.pages.seed import seed_backlog
    from orchestration.models import Policy, Worker
    from orchestration.models.fields import DatabaseNow

    seed_backlog(tasks, tasks // 2, say)
    Policy.objects.update(window=10_000, rate=None)
    Worker.objects.bulk_create(
        Worker(instance=f"{agent}-0", queue=agent, host="here", pid=1)
        for agent in Policy.objects.values_list("agent", flat=True)
    )
    # none of them is missed, however long this takes
    Worker.objects.update(seen_at=DatabaseNow() + timedelta(days=1))
    _settle()


def _oldest(count: int) -> list[object]:
    """Return the tasks that a claim would take first."""
    from orchestration.models import Step

    due = Step.objects.filter(agent=AGENT, process_state="pending", run_after=None, held_by=None)
    return list(due.order_by("-priority", "turn", "id").values_list("task_id", flat=True)[:count])


def _on_each(tasks: list[object], act: Callable[[list[object]], None], words: str) -> None:
    from orchestration import conf

    began = time.monotonic()
    for start in range(0, len(tasks), conf.BATCH):
        act(tasks[start : start + conf.BATCH])
    say(f"{time.monotonic() - began:6.0f} s  {len(tasks):,} tasks {words}")


def _hold(tasks: list[object]) -> None:
    from orchestration.transitions.holds import hold_tasks

    hold_tasks(tasks, actor="bench", reason="to see what it costs", operation=None)  # type: ignore[arg-type]


def _release(tasks: list[object]) -> None:
    from orchestration.transitions.holds import release_tasks

    release_tasks(tasks, actor="bench", reason="to see what it costs", operation=None)  # type: ignore[arg-type]


def _settle() -> None:
    """Sweep until there is nothing to be done, and vacuum as the database would within a minute."""
    from django.db import connection

    began = time.monotonic()
    for _ in _until_idle():
        pass
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    say(f"{time.monotonic() - began:6.0f} s  settled")


def _until_idle() -> Iterator[object]:
    while str(done := _sweep()):
        yield done


def _measure(rounds: int) -> dict[str, Cost]:
    return {name: _cost(act, rounds) for name, act in ACTS.items()}


def _cost(act: Callable[[], object], rounds: int) -> Cost:
    act()  # what it meets for the first time does not count
    cpu, clock = [], []
    for _ in range(rounds):
        used, began = cpu(), time.perf_counter()
        act()
        clock.append(time.perf_counter() - began)
        cpu.append(cpu() - used)
    return Cost(cpu=median(cpu) * 1000, clock=median(clock) * 1000)


def cpu() -> float:
    """Return the seconds of CPU that this process, and the database's for it, have used so far."""
    from django.db import connection

    connection.ensure_connection()
    backend = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat")
    return time.process_time() + int(backend.read_text().split()[0]) / 1e9


def _claim() -> None:
    """Claim a batch, and take that back."""
    from django.db import connection, transaction

    from orchestration import conf
    from orchestration.transitions.claim import claim

    with transaction.atomic():
        claimed = claim([AGENT], "bench")
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # as a commit would
        transaction.set_rollback(True)
    assert len(claimed.requests[AGENT]) == conf.BATCH


def _sweep() -> object:
    """Sweep as a supervisor and a housekeeper do that lead, chores and all."""
    from orchestration import leader, supervisor
    from orchestration.housekeeping import housekeeper

    recovery = leader.acquire("bench")
    housekeeping = leader.acquire("bench", name=leader.HOUSEKEEPER)
    assert recovery is not None
    assert housekeeping is not None
    return supervisor.sweep(recovery), housekeeper.sweep(housekeeping)


def _look() -> None:
    """Ask whether anything is due, as an idle sweep of each does."""
    from orchestration import due
    from orchestration.housekeeping import due as beside

    due.anything()
    beside.anything()


ACTS: dict[str, Callable[[], object]] = {"claim": _claim, "sweep": _sweep, "idle sweep": _look}


if __name__ == "__main__":
    sys.exit(main())
