"""Steps that end later, and steps with children, on a stack that has the application `drill.flows`."""

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from drill import proxy
from drill.flows import ledger
from drill.proxy import Proxy, Spoil
from drill.recipes import Running, recipe
from drill.recipes.crashes import doomed, wait_for_crash
from drill.servers import POSTGRES_SOCKET
from drill.stack import Stack
from drill.waiting import wait_for
from sasweb.stack import embedded

PROCESSED, UNDONE = {"processed"}, {"undone"}
ENDS = {
    "before": PROCESSED, "at_once": PROCESSED, "after": PROCESSED, "twice": PROCESSED,
    "contradicted": PROCESSED, "declined": UNDONE, "both": PROCESSED | UNDONE,
    "asked": PROCESSED, "asked_late": PROCESSED, "refused": UNDONE, "never": UNDONE,
}  # fmt: skip
STATES = "SELECT reference, state FROM orchestration_task WHERE reference LIKE %s"
REPORTED = """
SELECT count(*) FROM orchestration_taskrequest
WHERE agent = 'bench' AND external_id LIKE %s AND done_at IS NULL AND refused_at IS NULL
"""
# The parcels of each order: one has more than a scheduler makes by one statement.
COUNTS = (0, 1, 3, 8, 210)
CHILDREN = """
SELECT t.reference, jsonb_array_length(t.data->'parcels'), (
    SELECT count(*) FROM orchestration_task c JOIN orchestration_step s ON s.id = c.parent_id
    WHERE s.task_id = t.id)
FROM orchestration_task t WHERE t.reference = ANY(%s)
"""
# Of each order, in which turn its effects are taken back.
UNDO_TURN = {"last": 0, "pack": 1, "send": 1, "first": 2}


@recipe
def webhooks_cut(run: Running, *, act: str, each: int = 3) -> Iterator[None]:
    """Cut the web process's connections at each third COMMIT: before it arrives, or after its answer."""
    spoil = Spoil(act=act, every=3, chosen=proxy.is_commit)
    with tempfile.TemporaryDirectory() as folder:
        behind = Path(folder) / POSTGRES_SOCKET
        url = f"postgresql://postgres@/{embedded.DATABASE}?host={folder}"
        with (
            Proxy(behind, run.stack.sockets / POSTGRES_SOCKET, spoil),
            run.stack.replaced("web", DATABASE_URL=url),
        ):
            yield
            _report(run, each)
    assert spoil.struck >= 3, f"{spoil.struck} COMMITs were cut"


@recipe
def webhooks_crash(run: Running, *, point: str, each: int = 3) -> Iterator[None]:
    """Kill each web process as it has stored its sixth webhook: it is not answered, and sent again."""
    with run.stack.replaced("web", CRASH_AT=f"{point}:6"):
        yield
        _report(run, each)


def _report(run: Running, each: int) -> None:
    """Have charges that end by webhooks, not all taken; compare how they end."""
    prefix = f"charge-{uuid4().hex[:8]}"
    run.orders += [f"{prefix}-{kind}-{number}" for kind in ENDS for number in range(each)]
    broken = int(run.stack.python("drill.flows.partner", prefix, str(each)))
    assert broken >= 3, f"only {broken} webhooks were not taken at first"
    run.quiet()
    wait_for(lambda: not run.stack.count(REPORTED, f"{prefix}%"), "all reports are dealt with", 30)
    wrong = [
        f"{reference}: {state}"
        for reference, state in run.stack.sql(STATES, f"{prefix}%")
        if state not in ENDS[reference.split("-")[2]]
    ]
    assert not wrong, f"they ended otherwise than their partner has it: {wrong[:5]}"


@recipe
def crash_making(run: Running, *, point: str, times: int = 3) -> Iterator[None]:
    """Kill a scheduler while it makes children, several times: all children of a step are there, or none."""
    orders: list[str] = []
    for turn in range(times):
        with doomed(run.stack, "work-scheduler", point, 1 + turn) as processes:
            orders += _split(run, COUNTS)
            wait_for_crash(processes, point)
            _require_all_or_none(run.stack, orders)
    yield
    run.quiet()
    _require_all_or_none(run.stack, orders, none=False)


@recipe
def crash_undoing(run: Running, *, point: str, times: int = 3) -> Iterator[None]:
    """Kill a scheduler while it undoes children, of orders in flight and of others that have ended."""
    ended = _split(run, COUNTS)
    run.quiet()
    flying = _split(run, COUNTS)
    wait_for(lambda: _all_made(run.stack, flying), "children are made", 60)
    shares = [(ended + flying)[turn::times] for turn in range(times)]
    for turn, share in enumerate(shares):
        with doomed(run.stack, "work-scheduler", point, 1 + turn % 2) as processes:
            refused = run.stack.python("drill.operator", "undo", *share)
            assert not refused, f"an undo was refused: {refused[:300]}"
            wait_for_crash(processes, point)
    yield
    run.quiet()
    _require_order(run.stack, ended + flying)


def _split(run: Running, counts: Sequence[int]) -> list[str]:
    """Submit an order with each number of parcels; return the references."""
    prefix = f"split-{uuid4().hex[:8]}"
    tasks: dict[str, Any] = {
        f"{prefix}-{count}": {"parcels": list(range(count))} for count in counts
    }
    run.orders += tasks
    run.stack.python("drill.flows.submit", "drill_split", json.dumps(tasks))
    return list(tasks)


def _all_made(stack: Stack, orders: Sequence[str]) -> bool:
    rows = stack.sql(CHILDREN, list(orders))
    return len(rows) == len(orders) and all(expected == made for _, expected, made in rows)


def _require_all_or_none(stack: Stack, orders: Sequence[str], *, none: bool = True) -> None:
    wrong = [
        f"{reference}: {made} of {expected}"
        for reference, expected, made in stack.sql(CHILDREN, list(orders))
        if made != expected and (made or not none)
    ]
    assert not wrong, f"children of orders: {wrong}"


def _require_order(stack: Stack, orders: Sequence[str]) -> None:
    """Fail unless the partner was to take back what it did in the reverse order, and of each child, too."""
    tasks = {task: reference for task, reference, _ in stack.sql(ledger.TASKS, *[list(orders)] * 2)}
    turns: dict[str, list[int]] = defaultdict(list)
    of_children: dict[str, list[str]] = defaultdict(list)
    for effect in ledger.effects(stack, tasks):
        if effect.voids:
            reference = tasks[effect.task]
            turns[reference.partition("/")[0]].append(UNDO_TURN[effect.step])
            if "/" in reference:
                of_children[reference].append(effect.step)
    assert len(turns) > len(orders) / 2, f"only {len(turns)} orders had effects to take back"
    wrong = [reference for reference, order in turns.items() if order != sorted(order)]
    wrong += [reference for reference, steps in of_children.items() if steps != sorted(steps)[::-1]]
    assert not wrong, f"not undone in the reverse order: {wrong[:5]}"
