"""`python -m bench.ended`: what a million tasks that ended cost, and what removing them does.

Claims are measured as a scheduler makes them under 300 tasks a second: 50 a second, of 30 steps each,
with their commits on disk. In every other window of some seconds a housekeeper in another process
removes old tasks, as it does with each sweep. Then an hourly audit runs, and one of everything.
Keeps its database in DATA_DIR/ended (some GB); --keep uses it again.
"""

import argparse
import multiprocessing
import os
import sys
import time
from itertools import pairwise
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from statistics import quantiles

from bench import filled
from bench.console import progress, table
from sasweb.stack import folders

FOLDER = folders.data_dir() / "ended"
AGENT = "inventory"  # the first step of each task is its
CLAIMS_PER_S, STEPS_PER_CLAIM = 50, 30
RATIO, HOURLY_S = 1.2, 60.0  # the limits
OFF = {"synchronous_commit": "off"}

# What was claimed waits again, at the end of its line.
BACK = """
UPDATE orchestration_step SET process_state = 'pending', locked_by = NULL, complete_by = NULL,
    pending_since = clock_timestamp(), turn = (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint
WHERE process_state = 'processing' AND locked_by = 'bench'
"""
SIZES = """
SELECT relname, pg_total_relation_size(c.oid) FROM pg_class c
WHERE relname = ANY(%(names)s) AND relkind = 'r' ORDER BY 2 DESC
"""
DEAD = "SELECT sum(n_dead_tup)::int FROM pg_stat_user_tables"


def main() -> int:
    """Fill the database, measure, print; return 1 past the limits."""
    parser = argparse.ArgumentParser(prog="python -m bench.ended", description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--windows", type=int, default=6, help="of each kind")
    parser.add_argument("--seconds", type=float, default=8.0, help="of a window")
    parser.add_argument("--keep", action="store_true", help="use the database of the last run")
    options = parser.parse_args()
    with filled.database(FOLDER, fresh=not options.keep, settings=()):
        _prepare(options.tasks, fill=not options.keep)
        size = _sizes()
        ratio = _claims(options.windows, options.seconds)
        hourly = _audits()
    print(f"ended bytes_per_task={size} claim_p99_ratio={ratio:.2f} audit_hourly_s={hourly:.1f}")
    return 1 if ratio > RATIO or hourly > HOURLY_S else 0


def _prepare(tasks: int, *, fill: bool) -> None:
    from bench.pages.seed import seed
    from orchestration.models import Policy, RetentionPolicy

    if fill:
        seed(tasks, max(1, tasks // 100), progress)
    Policy.objects.update(window=10_000, rate=None)
    RetentionPolicy.objects.update(keep_days=15, looked_until=None, looked_anew=None)


def _sizes() -> int:
    """Print the bytes of each table for a task; return their sum."""
    from django.db import connection

    from orchestration.models import Task
    from orchestration.retention.belongings import TABLES

    names = [one.name for one in TABLES]
    with connection.cursor() as cursor:
        cursor.execute(SIZES, {"names": [*names, "orders_order"]})
        sizes = cursor.fetchall()
    tasks = Task.objects.count()
    rows = [[name, f"{size / 1e9:.2f}", f"{size / tasks:,.0f}"] for name, size in sizes]
    print(table([f"{tasks:,} tasks, nearly all ended", "GB", "bytes per task"], rows))
    return round(sum(size for name, size in sizes if name in names) / tasks)


def _claims(windows: int, seconds: float) -> float:
    """Measure claims beside removal and without; return the ratio of their p99."""
    context = multiprocessing.get_context("spawn")
    go, over, removed = context.Event(), context.Event(), context.Value("i", 0)
    remover = context.Process(target=_remove, args=(go, over, removed))
    remover.start()
    took: dict[str, list[float]] = {"without": [], "beside removal": []}
    _window(seconds / 2)  # warm up
    try:
        for _ in range(windows):
            for name, times in took.items():
                (go.set if name != "without" else go.clear)()
                times.extend(_window(seconds))
    finally:
        go.set()
        over.set()
        remover.join()
    rows = []
    for name, times in took.items():
        cuts = quantiles([1000 * one for one in times], n=100)
        rows.append([name, f"{len(times):,}", *(f"{cuts[at - 1]:.1f}" for at in (50, 95, 99))])
    print(table(["claims of 30 steps, ms", "claims", "p50", "p95", "p99"], rows))
    print(
        f"removed {removed.value / windows / seconds:,.0f} tasks a second, {removed.value:,} in all"
    )
    return float(rows[1][-1]) / float(rows[0][-1])


def _window(seconds: float) -> list[float]:
    from django.db import connection, transaction

    from orchestration import conf
    from orchestration.transitions.claim import claim

    conf.BATCH_SIZE = STEPS_PER_CLAIM
    took = []
    due, until = time.perf_counter(), time.perf_counter() + seconds
    while (began := time.perf_counter()) < until:
        with transaction.atomic():
            claimed = claim([AGENT], "bench")
        took.append(time.perf_counter() - began)
        assert len(claimed.requests[AGENT]) == STEPS_PER_CLAIM
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit = off")
            cursor.execute(BACK)
        due += 1 / CLAIMS_PER_S
        time.sleep(max(0.0, due - time.perf_counter()))
    return took


def _remove(go: Event, over: Event, removed: "Synchronized[int]") -> None:
    """Remove old tasks as the sweeps of a housekeeper do, while `go` is set."""
    os.environ["DATA_DIR"] = str(FOLDER)
    import django

    django.setup()
    from orchestration import conf
    from orchestration.retention import removal

    while not over.is_set():
        go.wait()
        began = time.monotonic()
        removed.value += removal.remove_due(conf.REMOVAL_BUDGET_S)
        over.wait(max(0.0, 1.0 - (time.monotonic() - began)))  # the interval of sweeps


def _audits() -> float:
    """Run an hourly audit, then one of everything; return the seconds of the first."""
    from datetime import timedelta

    from django.db import connection
    from django.utils import timezone

    from orchestration.audit import runner
    from orchestration.models import AuditRun

    AuditRun.objects.all().delete()
    ago = timezone.now() - timedelta(hours=1)
    AuditRun.objects.create(by=runner.DAILY, until=ago, ended_at=ago)
    AuditRun.objects.update(started_at=ago)
    rows, seconds = [], []
    for name in ("what changed in an hour, and is open", "everything"):
        slices = [time.monotonic()]
        by = "bench" if name == "everything" else runner.HOURLY
        result = runner.run(by, ledgers=False, report=lambda _: slices.append(time.monotonic()))  # noqa: B023
        assert result is not None
        longest = max(after - before for before, after in pairwise(slices))
        with connection.cursor() as cursor:
            cursor.execute(DEAD)
            ((dead,),) = cursor.fetchall()
        seconds.append(result.seconds)
        rows.append(
            [name, f"{result.tasks:,}", f"{result.seconds:.1f}", f"{longest:.1f}", f"{dead:,}"]
        )
    print(table(["audit of", "tasks", "s", "longest snapshot, s", "dead rows after"], rows))
    return seconds[0]


if __name__ == "__main__":
    sys.exit(main())
