"""`python -m bench.ended`: what a year of ended tasks costs, and what removing a month of them does.

First each page and each sweep. Then claims are measured as a scheduler makes them under 300 tasks a second:
50 a second, of 30 steps each, with their commits on disk. Most of the time a housekeeper in another process
removes the oldest month, as it does with each sweep. At last an hourly audit runs, and, with --whole, one of
everything. Keeps its database in DATA_DIR/ended (5 GB for a million tasks); --keep uses it again.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Mapping
from itertools import pairwise
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from statistics import quantiles

from bench import filled
from bench.console import conclude, interruptible, progress, table
from drill.servers import FAST
from sasweb.stack import folders

FOLDER = folders.data_dir() / "ended"
AGENT = "inventory"  # the first step of each task is its
DAYS, MONTH = 360, 30  # of all tasks; of those that are removed
CLAIMS_PER_S, STEPS_PER_CLAIM = 50, 30
NEWEST = 20_000  # the newest tasks: some have not ended
REMOVED_PER_S = 300  # at least: as many as go through
WITHOUT_S, BESIDE_S = 8.0, 32.0  # windows without removal and beside it
CLAIM_MS, RATIO, PAGE_MS, SWEEP_MS, HOURLY_S = 20.0, 1.2, 300.0, 100.0, 60.0  # at most
# For filling alone: nothing of it has to survive a crash
FILLING = (*FAST, "wal_level=minimal", "max_wal_senders=0", "max_wal_size=8GB", "autovacuum=off",
    "shared_buffers=2GB")  # fmt: skip

CONTEXT = multiprocessing.get_context("spawn")
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
DEAD = "SELECT sum(n_dead_tup)::int FROM pg_stat_all_tables"


def main() -> int:
    """Run it; return 1 past the limits."""
    parser = argparse.ArgumentParser(prog="python -m bench.ended", description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20, help="requests of each page")
    parser.add_argument("--whole", action="store_true", help="audit everything too")
    parser.add_argument("--keep", action="store_true", help="use the database of the last run")
    return interruptible(measure, parser.parse_args())


def measure(options: argparse.Namespace) -> int:
    """Fill the database, measure, print."""
    if not options.keep:
        filling = CONTEXT.Process(target=_fill, args=(options.tasks,))
        filling.start()
        filling.join()
        assert filling.exitcode == 0
    with filled.database(FOLDER, fresh=False, settings=()):
        figures = {"bytes_per_task": _sizes(), "page_p95_ms": _pages(options.rounds)}
        figures |= {
            "sweep_ms": _sweep(),
            **_claims(),
            "audit_hourly_s": _audits(whole=options.whole),
        }
    words = [f"{name}={value:.{0 if value >= 100 else 2}f}" for name, value in figures.items()]
    return conclude(_missed(figures), f"ended {' '.join(words)}")


def _missed(figures: Mapping[str, float]) -> list[str]:
    limits = {
        "page_p95_ms": PAGE_MS, "sweep_ms": SWEEP_MS, "claim_p99_ms": CLAIM_MS,
        "claim_p99_ratio": RATIO, "audit_hourly_s": HOURLY_S,
    }  # fmt: skip
    missed = [
        f"{name} is {figures[name]:.2f}; the target is at most {limit:g}."
        for name, limit in limits.items()
        if figures[name] > limit
    ]
    if figures["removed_per_s"] < REMOVED_PER_S:
        missed.append(
            f"{figures['removed_per_s']:.0f} tasks removed a second, not {REMOVED_PER_S}."
        )
    return missed


def _fill(tasks: int) -> None:
    with filled.database(FOLDER, fresh=True, settings=FILLING):
        from bench.pages.seed import seed

        seed(tasks, max(1, tasks // 1_000), progress, days=DAYS, newest=min(NEWEST, tasks // 50))


def _sizes() -> int:
    """Print the bytes of each table for a task; return their sum."""
    from django.db import connection

    from orchestration.assurance.retention.belongings import TABLES
    from orchestration.models import Task

    names = [belonging.name for belonging in TABLES]
    with connection.cursor() as cursor:
        cursor.execute(SIZES, {"names": [*names, "orders_order"]})
        sizes = cursor.fetchall()
    tasks = Task.objects.count()
    rows = [[name, f"{size / 1e9:.2f}", f"{size / tasks:,.0f}"] for name, size in sizes]
    print(table([f"{tasks:,} tasks, nearly all ended", "GB", "bytes per task"], rows))
    return round(sum(size for name, size in sizes if name in names) / tasks)


def _pages(rounds: int) -> float:
    """Measure all pages; return the ms of the slowest."""
    from bench.pages.measure import table as of_pages
    from bench.pages.server import timings

    measured = timings(rounds)
    assert all(timing.status == timing.page.status for timing in measured)
    slowest = sorted(measured, key=lambda timing: -timing.p95)[:10]
    print("The ten slowest pages:\n")
    print(of_pages(slowest))
    return 1000 * slowest[0].p95


def _sweep() -> float:
    """Return the ms of CPU of a supervisor's and a housekeeper's sweep that remove nothing."""
    from bench.scale import cost, open_gates, sweep, sweep_all
    from orchestration.models import RetentionPolicy

    open_gates()
    RetentionPolicy.objects.update(keep_days=None)
    sweep_all()
    return cost(sweep, 20)


def _claims() -> dict[str, float]:
    """Measure claims while the oldest month is removed, and without; return the figures."""
    from orchestration.models import RetentionPolicy

    RetentionPolicy.objects.update(keep_days=DAYS - MONTH, looked_until=None, looked_anew=None)
    go, over, removed = CONTEXT.Event(), CONTEXT.Event(), CONTEXT.Value("i", 0)
    remover = CONTEXT.Process(target=_remove, args=(go, over, removed))
    remover.start()
    windows = {"without": WITHOUT_S, "beside removal": BESIDE_S}
    took: dict[str, list[float]] = {name: [] for name in windows}
    spent = 0.0
    try:
        _window(WITHOUT_S, over)  # warm up
        while not over.is_set():
            for name, seconds in windows.items():
                (go.clear if name == "without" else go.set)()
                began = time.perf_counter()
                took[name].extend(_window(seconds, over))
                spent += time.perf_counter() - began if name != "without" else 0.0
            so_far = [f"{1000 * quantiles(times, n=100)[98]:.1f}" for times in took.values()]
            progress(
                f"{removed.value:,} tasks removed in {spent:.0f} s; p99 {' and '.join(so_far)} ms"
            )
    finally:
        over.set()
        go.set()
        remover.join()
    assert remover.exitcode == 0
    rows, p99 = [], []
    for name, times in took.items():
        cuts = quantiles([1000 * seconds for seconds in times], n=100)
        p99.append(cuts[98])
        rows.append([name, f"{len(times):,}", *(f"{cuts[at - 1]:.1f}" for at in (50, 95, 99))])
    print(table(["claims of 30 steps, ms", "claims", "p50", "p95", "p99"], rows))
    print(f"{removed.value:,} tasks removed, the oldest {MONTH} of {DAYS} days")
    return {
        "removed_per_s": removed.value / spent,
        "claim_p99_ms": max(p99),
        "claim_p99_ratio": p99[1] / p99[0],
    }


def _window(seconds: float, over: Event) -> list[float]:
    """Claim for some seconds, or until it is over; return the seconds of each claim."""
    from django.db import connection, transaction

    from orchestration import conf
    from orchestration.transitions.claim import claim

    conf.BATCH_SIZE = STEPS_PER_CLAIM
    took = []
    due, until = time.perf_counter(), time.perf_counter() + seconds
    while (began := time.perf_counter()) < until and not over.is_set():
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
    """Remove old tasks as the sweeps of a housekeeper do, while `go` is set, until it is over."""
    os.environ["DATA_DIR"] = str(FOLDER)
    import django

    django.setup()
    from orchestration import conf
    from orchestration.assurance.retention import removal

    try:
        while not over.is_set():
            go.wait()
            began = time.monotonic()
            count = removal.remove_due(conf.REMOVAL_BUDGET_S)
            if not count:
                break
            removed.value += count
            time.sleep(max(0.0, 1.0 - (time.monotonic() - began)))  # the interval of sweeps
    finally:
        over.set()  # else the claims would go on for ever


def _audits(*, whole: bool) -> float:
    """Run an hourly audit, then perhaps one of everything; return the seconds of the first."""
    from datetime import timedelta

    from django.utils import timezone

    from orchestration.assurance.audit import runner
    from orchestration.models import AuditRun

    AuditRun.objects.all().delete()
    ago = timezone.now() - timedelta(hours=1)
    AuditRun.objects.create(by=runner.DAILY, until=ago, ended_at=ago)
    AuditRun.objects.update(started_at=ago)
    rows, seconds = [], []
    names = ["what changed in an hour, and is under way", *(["everything"] if whole else [])]
    for name in names:
        dead = _dead_rows()
        slices = [time.monotonic()]
        by = "bench" if name == "everything" else runner.HOURLY
        result = runner.run(by, ledgers=False, report=lambda _: slices.append(time.monotonic()))  # noqa: B023
        assert result is not None
        longest = max(after - before for before, after in pairwise(slices))
        seconds.append(result.seconds)
        rows.append(
            [
                name,
                f"{result.tasks:,}",
                f"{result.seconds:.1f}",
                f"{longest:.1f}",
                f"{_dead_rows() - dead:+,}",
            ]
        )
    print(table(["audit of", "tasks", "s", "longest snapshot, s", "dead rows"], rows))
    return seconds[0]


def _dead_rows() -> int:
    """Return the number of dead rows, those of the catalogue among them."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(DEAD)
        return int(cursor.fetchone()[0])


if __name__ == "__main__":
    sys.exit(main())
