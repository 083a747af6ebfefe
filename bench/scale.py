"""`python -m bench.scale`: the cost of a claim and a sweep beside a million waiting tasks.

It explains each statement of a turn there: none may read more than it returns.

Then a million more tasks have a step that is awaited for days, and a fifth of the first are held, and
released: none of that may raise the cost of a claim or a sweep. The cost is the CPU of a process and
of its database backend, which other load of the machine hardly changes; its speed does, so ratios are of
costs in a copy of the first database, measured by turns. Keeps its databases in DATA_DIR/scale (some GB).
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from bench import filled
from bench.console import progress, table
from bench.turn_plans import explain_turns
from drill.servers import Servers
from sasweb.stack import embedded, folders

FOLDER = folders.data_dir() / "scale"
AGENT = "inventory"  # the first step of each task is its
CONTROL, SETTLE = "control", "settle"
CONTEXT = multiprocessing.get_context("spawn")
SWEEP = 100.0  # ms, at most
# at most times what it is in the copy: of a claim beside what is awaited, of all others
CLAIM_AWAITED, RATIO = 1.05, 1.2
# what is awaited has none of these
TRACES = """
SELECT (SELECT count(*) FROM orchestration_wait JOIN orchestration_attempt USING (step_id)),
    (SELECT count(*) FROM orchestration_wait JOIN orchestration_event USING (task_id)),
    (SELECT count(*) FROM orchestration_wait JOIN orchestration_incidenthit USING (step_id))
"""


def main() -> int:
    """Fill the databases, measure, print the table; return 1 past the limits."""
    options = parse_options()
    with filled.database(FOLDER, fresh=True) as servers:
        prepare(options.tasks)
        reads = explain_turns([AGENT, "payment"], 40)
        _settle()
        _copy(servers)
        with _acting(embedded.DATABASE) as here, _acting(CONTROL) as control:
            _await(options.awaited)
            costs = {"awaited": _measure(options.rounds, here, control)}
            tasks = _oldest(options.held)
            _on_each(tasks, _hold, "held")
            _settle()
            costs["held"] = _measure(options.rounds, here, control)
            _on_each(tasks, _release, "released")
            _settle()
            costs["released"] = _measure(options.rounds, here, control)
    head = [
        f"{options.tasks:,} tasks wait, {options.awaited:,} are awaited, {options.held:,} are",
        *ACTIONS,
    ]
    rows = [
        [name, *(f"{here:.1f} : {there:.1f}" for here, there in cost.values())]
        for name, cost in costs.items()
    ]
    print(table(head, rows))
    print("Milliseconds of CPU time : beside the tasks that wait alone.")
    ratios = {
        f"{act}_{name}": cost[act][0] / cost[act][1]
        for act in ("claim", "sweep")
        for name, cost in costs.items()
    }
    million = max(costs["awaited"]["sweep"])
    words = [f"{name}={ratio:.2f}" for name, ratio in ratios.items()]
    print(f"scale {' '.join(words)} sweep_million_ms={million:.1f}")
    wasteful = [read for read in reads if read.wasteful]
    for read in wasteful:
        print(f"Reads more than it returns: {read}")
    print(f"turn steps_of_plans={len(reads)} reading_too_much={len(wasteful)}")
    slower = max(ratios.values()) > RATIO or ratios["claim_awaited"] > CLAIM_AWAITED
    return 1 if wasteful or slower or million > SWEEP else 0


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000, help="waiting tasks")
    parser.add_argument("--awaited", type=int, default=1_000_000, help="tasks that await a service")
    parser.add_argument("--held", type=int, default=200_000, help="number of them to hold")
    parser.add_argument("--rounds", type=int, default=30, help="of each action")
    return parser.parse_args()


def prepare(tasks: int) -> None:
    """Fill an empty database with waiting tasks, half of them until a retry is due."""
    from bench.pages.seed import seed_backlog

    seed_backlog(tasks, tasks // 2, progress)
    open_gates()
    _settle()


def _await(count: int) -> None:
    """Add tasks that are awaited, sweep, and check that this leaves no trace of them."""
    from django.db import connection

    from bench.pages.waits import seed_waits

    seed_waits(count, progress)
    _settle()
    with connection.cursor() as cursor:
        cursor.execute(TRACES)
        assert cursor.fetchone() == (0, 0, 0), "what is awaited has a history"


def open_gates() -> None:
    """Let the agents' gates pass all, and have a worker of each seem to be at work for a day."""
    from orchestration.models import Policy, Worker
    from orchestration.models.fields import DatabaseNow

    Policy.objects.update(window=10_000, rate=None)
    Worker.objects.all().delete()
    Worker.objects.bulk_create(
        Worker(instance=f"{agent}-0", queue=agent, host="here", pid=1)
        for agent in Policy.objects.values_list("agent", flat=True)
    )
    Worker.objects.update(seen_at=DatabaseNow() + timedelta(days=1))


def _oldest(count: int) -> list[object]:
    """Return the tasks that a claim would select first."""
    from orchestration.models import Step

    due = Step.objects.filter(agent=AGENT, process_state="pending", run_after=None, held_by=None)
    return list(due.order_by("-priority", "turn", "id").values_list("task_id", flat=True)[:count])


def _on_each(tasks: list[object], act: Callable[[list[object]], None], words: str) -> None:
    from orchestration import conf

    began = time.monotonic()
    for start in range(0, len(tasks), conf.BATCH_SIZE):
        act(tasks[start : start + conf.BATCH_SIZE])
    progress(f"{time.monotonic() - began:6.0f} s  {len(tasks):,} tasks {words}")


def _hold(tasks: list[object]) -> None:
    from orchestration.transitions.holds import hold_tasks

    hold_tasks(tasks, actor="bench", reason="benchmark", operation=None)  # type: ignore[arg-type]


def _release(tasks: list[object]) -> None:
    from orchestration.transitions.holds import release_tasks

    release_tasks(tasks, actor="bench", reason="benchmark", operation=None)  # type: ignore[arg-type]


def _settle() -> None:
    """Sweep until no work is due, then vacuum as autovacuum would within a minute."""
    from django.db import connection

    began = time.monotonic()
    sweep_all()
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 0")  # an autovacuum may have a table for longer
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("RESET lock_timeout")
    progress(f"{time.monotonic() - began:6.0f} s  settled")


def _copy(servers: Servers) -> None:
    from django.db import connection

    connection.close()  # a database that is copied must have no session
    servers.execute(f'CREATE DATABASE "{CONTROL}" TEMPLATE "{embedded.DATABASE}"')


@contextmanager
def _acting(database: str) -> Iterator[Connection]:
    """Keep a process that acts on a database as it is asked to."""
    asking, answering = CONTEXT.Pipe()
    url = embedded.database_url().replace(f"/{embedded.DATABASE}?", f"/{database}?")
    process = CONTEXT.Process(target=_act, args=(answering, url), daemon=True)
    process.start()
    yield asking
    asking.send("")
    process.join()


def _act(pipe: Connection, url: str) -> None:
    """Act on a database; answer each action with the CPU seconds that it took."""
    os.environ["DATABASE_URL"] = url
    import django

    django.setup()
    while name := pipe.recv():
        pipe.send(used(_settle if name == SETTLE else ACTIONS[name]))


def _measure(rounds: int, here: Connection, control: Connection) -> dict[str, tuple[float, float]]:
    """Return the medians in ms, of both: by turns, as the machine's speed varies."""
    _ask(control, SETTLE)
    return {
        name: _medians([(_ask(here, name), _ask(control, name)) for _ in range(rounds + 1)])
        for name in ACTIONS
    }


def _ask(process: Connection, name: str) -> float:
    process.send(name)
    return float(process.recv())


def _medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    here, there = zip(*pairs[1:], strict=True)  # the first warms up
    return 1000 * median(here), 1000 * median(there)


def cost(act: Callable[[], object], rounds: int) -> float:
    """Return the median of all rounds in milliseconds of CPU time."""
    act()  # warm up
    return 1000 * median(used(act) for _ in range(rounds))


def used(act: Callable[[], object]) -> float:
    """Return the seconds of CPU time that an action takes."""
    before = cpu()
    act()
    return cpu() - before


def cpu() -> float:
    """Return seconds of CPU that this process and its database backend have used so far."""
    from django.db import connection

    connection.ensure_connection()
    backend = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat")
    return time.process_time() + int(backend.read_text().split()[0]) / 1e9


def _claim() -> None:
    """Claim a batch and roll it back."""
    from django.db import connection, transaction

    from orchestration import conf
    from orchestration.transitions.claim import claim

    with transaction.atomic():
        claimed = claim([AGENT], "bench")
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # as a commit would
        transaction.set_rollback(True)
    assert len(claimed.requests[AGENT]) == conf.BATCH_SIZE


def sweep() -> Sequence[object]:
    """Sweep as a leading supervisor and a leading housekeeper do."""
    from orchestration import supervisor
    from orchestration.cluster import leader_election
    from orchestration.housekeeping import housekeeper

    recovery = leader_election.acquire("bench")
    housekeeping = leader_election.acquire("bench", name=leader_election.HOUSEKEEPER)
    assert recovery is not None
    assert housekeeping is not None
    return supervisor.sweep(recovery), housekeeper.sweep(housekeeping)


def sweep_all() -> None:
    """Sweep until no work is due."""
    while any(map(str, sweep())):  # a sweep that did nothing is an empty string
        pass


def _sweep_idle() -> None:
    """Check whether work is due, as an idle sweep of each does."""
    from orchestration import supervisor
    from orchestration.housekeeping import housekeeper
    from orchestration.supervision.duties import due

    due(supervisor.DUTIES)
    due(housekeeper.all_duties())


ACTIONS: dict[str, Callable[[], object]] = {
    "claim": _claim,
    "sweep": sweep,
    "idle sweep": _sweep_idle,
}


if __name__ == "__main__":
    sys.exit(main())
