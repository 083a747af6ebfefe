"""`python -m bench.flat`: what a task costs as there is more of everything.

First with more schedulers and more agents, each under a backlog. Then with a million tasks that wait, minute
by minute, at last beside a transaction that is held open: dead rows can't be removed meanwhile. The last line
is for scripts: costs as multiples of what they are with one of each and few tasks, and the tasks/s beside the
transaction as a share of those before it. Takes half an hour.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from statistics import median
from typing import NamedTuple

from bench.console import conclude, interruptible, progress, table
from bench.measure import FLAT, own_cost, per_task
from bench.session import Session, session
from bench.systems import ENGINE, PREPARE, engine
from bench.testbed import Testbed, testbed
from sasweb.stack import folders
from sasweb.stack.embedded import DATABASE

# name: schedulers, agents, tasks
VARIANTS = {
    "one of each": (1, 1, 1_000),
    "100,000 tasks": (1, 1, 100_000),
    "2 schedulers": (2, 1, 10_000),
    "4 schedulers": (4, 1, 10_000),
    "20 agents": (1, 20, 10_000),
}
RUNS = 5  # of fewer than `LARGE` tasks
LARGE = 50_000
SHARE = 0.85  # of the tasks/s, beside a transaction that is held open
MINUTE, BEFORE = 60.0, 2  # seconds; number of them before the transaction
PATIENCE = 900.0  # seconds until the tasks have left the inbox
POSTED_AT_ONCE = 50_000

POST = """
SELECT FROM (SELECT array_agg('large-' || n) AS refs,
        array_agg(jsonb_build_object('order', 'large-' || n)) AS data
    FROM generate_series({first}, {last}) AS n) AS given,
    orchestration_submit(array_fill('three_calls'::text, ARRAY[{count}]), refs, data,
        array_fill(''::text, ARRAY[{count}]), array_fill(''::text, ARRAY[{count}]),
        array_fill(0::smallint, ARRAY[{count}]), array_fill(''::text, ARRAY[{count}]))
"""
# by task_by_end; the dead rows as the statistics have them
STATE = """
SELECT clock_timestamp(), (SELECT count(*) FROM orchestration_task WHERE ended_at > '{since}'),
    (SELECT sum(n_dead_tup)::bigint FROM pg_stat_user_tables)
"""
LIMIT = "UPDATE orchestration_policy SET \"window\" = {window} WHERE agent = 'caller'"
WINDOW_OF = "SELECT \"window\" FROM orchestration_policy WHERE agent = 'caller'"
INBOX = "SELECT EXISTS (SELECT FROM orchestration_submission)"
WAITING = "SELECT count(*) FROM orchestration_task WHERE state = 'pending'"


class Minute(NamedTuple):
    """A minute of the long run: tasks that wait at its end, tasks/s, ms of CPU per task, dead rows."""

    waiting: int
    rate: float
    cost: float
    dead: int


def main() -> int:
    """Run it; return 1 if a target was missed."""
    return interruptible(measure, parse_options())


def measure(options: argparse.Namespace) -> int:
    """Measure on servers of its own, and print the results."""
    with testbed(folders.data_dir() / "flat") as running:
        costs = {name: _variant(running, name) for name in VARIANTS}
        before, held = _long_run(running, options.tasks, options.minutes)
    costs[f"{options.tasks:,} tasks"] = median(minute.cost for minute in before)
    share = median(minute.rate for minute in held) / median(minute.rate for minute in before)
    rows = [
        [
            str(number),
            name,
            f"{minute.waiting:,}",
            f"{minute.rate:.0f}",
            f"{minute.cost:.2f}",
            f"{minute.dead:,}",
        ]
        for name, minutes in (("", before), ("held", held))
        for number, minute in enumerate(minutes, 1)
    ]
    head = ["minute", "transaction", "waiting", "tasks/s", "CPU ms per task", "dead rows"]
    sys.stdout.write(f"{table(head, rows)}\n\n")
    return conclude(*verdict(costs, share))


def verdict(costs: Mapping[str, float], share: float) -> tuple[list[str], str]:
    """Return a sentence for each missed target, and the line for scripts.

    `costs` are ms of CPU of a task, by what there is more of; the first has one of each. `share` is of the
    tasks/s, beside the transaction.
    """
    (_, base), *others = costs.items()
    ratios = {name: cost / base for name, cost in others}
    missed = [
        f"With {name} a task costs {ratio:.2f} times its CPU; the target is {FLAT:g}."
        for name, ratio in ratios.items()
        if ratio > FLAT
    ]
    if share < SHARE:
        missed.append(
            f"Beside the transaction {share:.2f} of the tasks/s; the target is {SHARE:g}."
        )
    words = [
        f"{name.replace(' ', '_').replace(',', '')}={ratio:.2f}" for name, ratio in ratios.items()
    ]
    return missed, f"flat {' '.join(words)} held={share:.2f}"


def _variant(bed: Testbed, name: str) -> float:
    """Return the ms of CPU of a task under a backlog."""
    schedulers, agents, tasks = VARIANTS[name]
    system = engine(schedulers, agents)
    prepare = PREPARE[ENGINE]
    bed.run(prepare.command, {**prepare.environment, "AGENTS": str(agents)})
    with session(bed, system) as running:
        running.backlog(system.warm_up)
        running.backlog(system.warm_up)
        bed.checkpoint()
        runs = [running.backlog(tasks) for _ in range(RUNS if tasks < LARGE else 1)]
    cost = median(own_cost(cpu) for _, cpu in runs)
    progress(
        f"{name}: {cost:.2f} ms of CPU per task, {median(rate for rate, _ in runs):.0f} tasks/s"
    )
    return cost


def _long_run(bed: Testbed, tasks: int, minutes: int) -> tuple[list[Minute], list[Minute]]:
    """Return the minutes before the transaction is begun, and those beside it."""
    with session(bed, engine()) as running:
        running.backlog(500)
        ((usual,),) = bed.execute(WINDOW_OF, DATABASE)
        bed.execute(LIMIT.format(window=1), DATABASE)  # so that nearly all wait for the agent
        for first in range(1, tasks + 1, POSTED_AT_ONCE):
            last = min(first + POSTED_AT_ONCE - 1, tasks)
            bed.execute(POST.format(first=first, last=last, count=last - first + 1), DATABASE)
        progress(f"{tasks:,} tasks are posted")
        give_up_at = time.monotonic() + PATIENCE
        while bed.execute(INBOX, DATABASE)[0][0]:
            if time.monotonic() > give_up_at:
                raise RuntimeError(f"tasks are in the inbox after {PATIENCE:g} s")
            time.sleep(1)
        bed.execute(LIMIT.format(window=usual), DATABASE)
        bed.execute("VACUUM (ANALYZE)", DATABASE)  # as autovacuum would within minutes
        bed.checkpoint()
        before = [_minute(bed, running) for _ in range(BEFORE)]
        with _held_open(bed):
            progress("a transaction is held open")
            held = [_minute(bed, running) for _ in range(minutes)]
    return before, held


def _minute(bed: Testbed, running: Session) -> Minute:
    began, _, _ = bed.execute(STATE.format(since="infinity"), DATABASE)[0]
    cpu = running.cpu()
    time.sleep(MINUTE)
    used = running.cpu()
    ended, done, dead = bed.execute(STATE.format(since=began.isoformat()), DATABASE)[0]
    ((waiting,),) = bed.execute(WAITING, DATABASE)
    if not waiting:
        raise RuntimeError("no task waits any more: give it more with --tasks")
    rate = done / (ended - began).total_seconds()
    minute = Minute(waiting, rate, own_cost(per_task(cpu, used, done)), dead)
    progress(f"{waiting:,} tasks wait: {minute.cost:.2f} ms of CPU per task, {rate:.0f} tasks/s")
    return minute


@contextmanager
def _held_open(bed: Testbed) -> Iterator[None]:
    """Hold a transaction with a snapshot and an id open."""
    with closing(bed.connect(DATABASE)) as connection, connection.cursor() as cursor:
        cursor.execute("SET idle_in_transaction_session_timeout = 0")
        connection.commit()
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT pg_current_xact_id()")
        yield
        cursor.execute("SELECT 1")  # it was open to the end


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.flat", description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_200_000, help="number that wait")
    parser.add_argument("--minutes", type=int, default=10, help="beside the open transaction")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
