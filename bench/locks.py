"""`python -m bench.locks`: what rows cost that are locked by the ORM, beside statements written by hand.

A claim, and the locks that recording its replies takes, of one step and of a full batch: by the
ORM's `select_for_update`, compiled once in each process (`sql.compiled`); by SQL written by hand; and by
querysets built each time. They take turns on the same rows, and each is rolled back. What counts is
the CPU of this process and of the database's that serves it. The last line is for scripts: `ratio` is
of the ORM's to the SQL's, the worse one of both sizes. Keeps its database in DATA_DIR/locks.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from statistics import median
from typing import Any

from bench import filled
from bench.filled import say
from bench.scale import AGENT, cpu, prepare
from sasweb.stack import folders

FOLDER = folders.data_dir() / "locks"
LIMIT = 1.03  # times the CPU of what is written by hand
WAITING = 2_000  # tasks
SIZES = (1, 200)  # steps
Ways = dict[str, list[Callable[..., str]]]
STATEMENTS = (("backlog", "in_turn"), ("changes", "locking"), ("gates", "locking"))

IN_TURN = """
SELECT s.id, s.task_id, t.workflow, t.state, s.name, s.direction, s.action, s.generation, s.attempt,
    s.request, t.reference, extract(epoch FROM s.pending_since)::float8,
    (SELECT bool_or(h.until IS NULL) FROM orchestration_hold h WHERE h.task_id = s.task_id),
    CASE WHEN %(steps_held)s THEN EXISTS (SELECT FROM orchestration_hold h WHERE h.scope = 'step'
        AND h.agent = '' AND h.workflow = t.workflow AND h.step = s.name AND h.until IS NULL) END
FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE s.agent = %(agent)s AND s.alone = %(alone)s AND s.process_state = 'pending'
    AND s.run_after IS NULL AND s.held_by_id IS NULL AND s.id <> ALL(%(besides)s::bigint[])
ORDER BY s.priority DESC, s.turn, s.id
"""
TASKS = """
SELECT id, workflow, data, state, undo_at IS NOT NULL, tell_steps, priority, fairness_key
FROM orchestration_task WHERE id = ANY(%(tasks)s::uuid[]) ORDER BY id FOR NO KEY UPDATE"""
GATES = """
SELECT g.agent, jsonb_build_object('window', p."window", 'rate', p.rate, 'time_allowed',
        p.time_allowed, 'calls', p.breaker_calls, 'failures', p.breaker_failures, 'share',
        p.breaker_share, 'pause', p.breaker_pause, 'pause_cap', p.breaker_pause_cap),
    g.state, extract(epoch FROM g.since)::float8, g.slots,
    extract(epoch FROM g.answered_at)::float8, extract(epoch FROM g.opened_at)::float8,
    extract(epoch FROM g.probe_at)::float8, g.trips, g.allowance,
    extract(epoch FROM g.paused_until)::float8, g.tokens, extract(epoch FROM g.tokens_at)::float8
FROM orchestration_gate g JOIN orchestration_policy p ON p.agent = g.agent
WHERE g.agent = ANY(%(agents)s) ORDER BY g.agent FOR NO KEY UPDATE OF g"""


def main() -> int:
    """Measure, print the table; return 1 past the limit."""
    options = parse_options()
    with filled.database(FOLDER, fresh=True):
        prepare(2 * WAITING)
        ways = _ways()
        found = {size: _measure(ways, size, options.rounds) for size in SIZES}
    names = list(ways)
    print(f"| steps | {' | '.join(names)} |")
    print(f"| --: |{' --: |' * len(names)}")
    for size, costs in found.items():
        figures = (f"{median(costs[name]) * 1000:.3f}" for name in names)
        print(f"| {size} | {' | '.join(figures)} |")
    print("Milliseconds of CPU of a claim, and of locking the tasks of what it took.")
    ratios = {
        size: median(orm / by_hand for orm, by_hand in zip(costs["orm"], costs["sql"], strict=True))
        for size, costs in found.items()
    }
    orm, by_hand = (median(found[200][name]) * 1000 for name in ("orm", "sql"))
    words = " ".join(f"ratio_{size}={ratio:.3f}" for size, ratio in ratios.items())
    print(f"locks orm={orm:.3f} sql={by_hand:.3f} {words} ratio={max(ratios.values()):.3f}")
    return int(max(ratios.values()) > LIMIT)


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.locks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=400, help="of each")
    return parser.parse_args()


def _measure(ways: Ways, size: int, rounds: int) -> dict[str, list[float]]:
    """Return the CPU of claims of so many steps, in seconds, by how their rows were locked."""
    from orchestration.models import Policy

    Policy.objects.update(window=size, aged_after=604_800)
    found: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name in sorted(ways, reverse=bool(number % 2)):
            for (module, function), way in zip(STATEMENTS, ways[name], strict=True):
                setattr(import_module(f"orchestration.transitions.{module}"), function, way)
            took = _claim_and_lock(size)
            if number:  # what is met for the first time does not count
                found[name].append(took)
    say(f"measured {rounds} rounds of {size}")
    return found


def _ways() -> Ways:
    """Return what gives each of the statements, by how it is made."""
    orm = [
        getattr(import_module(f"orchestration.transitions.{module}"), function)
        for module, function in STATEMENTS
    ]
    return {
        "orm": orm,
        "sql": [_in_turn, partial(_locking, TASKS), partial(_locking, GATES)],
        "built": [way.__wrapped__ for way in orm],  # type: ignore[attr-defined]
    }


def _in_turn(limit: int) -> str:
    return f"{IN_TURN} LIMIT {limit} FOR NO KEY UPDATE OF t, s SKIP LOCKED"


def _locking(statement: str, *, skip: bool) -> str:
    return statement + (" SKIP LOCKED" if skip else "")


def _claim_and_lock(size: int) -> float:
    from django.db import transaction

    from orchestration.transitions.changes import lock
    from orchestration.transitions.claim import claim

    with transaction.atomic():
        before = cpu()
        requests: list[Any] = claim([AGENT], "bench").requests[AGENT]
        lock([request.task for request in requests], wait=False)
        took = cpu() - before
        transaction.set_rollback(True)
    if len(requests) != size:
        raise RuntimeError(f"{len(requests)} steps were claimed, not {size}")
    return took


if __name__ == "__main__":
    sys.exit(main())
