"""What `bench.fair` asks of the engine: `python -m bench.engine.fair claim|load <tasks>`, as JSON."""

import json
import sys
import time
from collections.abc import Callable
from statistics import median

import django

django.setup()

from django.db import connection, transaction  # noqa: E402 - the models need django.setup()

from bench.engine.client import WORKFLOW  # noqa: E402
from drill.waiting import let_pass, wait_for  # noqa: E402
from orchestration import api, conf  # noqa: E402
from orchestration.models import Policy, Submission, Task  # noqa: E402
from orchestration.transitions import backlog  # noqa: E402
from orchestration.transitions.claim import claim as claim_steps  # noqa: E402
from orchestration.transitions.create import NewTask, create  # noqa: E402

AGENT = "caller"
POST = 500  # tasks in one statement
FEW = 10
PATIENCE = 600.0  # seconds
WINDOW = 5.0  # seconds over which a rate is measured
KEYS = 20
PAIRS = 150  # of claims by turn and by age
AGE = """
CREATE INDEX step_age ON orchestration_step (agent, alone, priority DESC, id)
WHERE process_state = 'pending' AND run_after IS NULL AND held_by_id IS NULL
"""
TURN = '"orchestration_step"."turn" ASC, '
Statement = Callable[[int], str]
by_turn = backlog.in_turn


def by_age(limit: int) -> str:
    """Return the statement for the first steps by priority, then age."""
    statement = by_turn(limit)
    assert TURN in statement
    return statement.replace(TURN, "")


def claim(tasks: int) -> dict[str, float]:
    """Return what a claim of a batch costs in ms, by turn and by age, while `tasks` wait.

    Both have an index in their order, and take turns on the same rows, so that all else that the
    machine does slows both down; `ratio` is the middle one of all pairs. Each claim is rolled back,
    so that the next finds the same.
    """
    policies = Policy.objects.filter(agent=AGENT)
    window = policies.get().window
    policies.update(window=max(window, conf.BATCH))
    new = [
        NewTask(
            workflow=WORKFLOW,
            reference=f"claim-{number}",
            data={"order": "1"},
            fairness_key=f"key-{number % KEYS}",
        )
        for number in range(tasks)
    ]
    for start in range(0, tasks, POST):
        with transaction.atomic():
            create(new[start : start + POST])
    with connection.cursor() as cursor:
        cursor.execute(AGE)
        cursor.execute("VACUUM ANALYZE orchestration_step")
        cursor.execute("VACUUM ANALYZE orchestration_task")
    pairs = []
    for number in range(PAIRS):
        orders = (by_turn, by_age) if number % 2 else (by_age, by_turn)
        took = {order: _claim(order) for order in orders}
        pairs.append((took[by_turn], took[by_age]))
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX step_age")
        cursor.execute("TRUNCATE orchestration_task CASCADE")
    policies.update(window=window)
    turns, ages = zip(*pairs, strict=True)
    ratios = [turn / age for turn, age in pairs]
    return {"with": median(turns), "without": median(ages), "ratio": median(ratios)}


def _claim(order: Statement) -> float:
    """Claim a batch in this order; return how long it took, in ms."""
    backlog.in_turn = order  # type: ignore[assignment]
    with transaction.atomic():
        began = time.perf_counter()
        claimed = claim_steps([AGENT], "bench").requests[AGENT]
        took = (time.perf_counter() - began) * 1000
        transaction.set_rollback(True)
    if len(claimed) < conf.BATCH:
        raise RuntimeError(f"{len(claimed)} steps were claimed, not a batch")
    return took


def load(tasks: int) -> dict[str, float]:
    """Return how long ten tasks take behind many of another key, and the rate of these, in tasks/s.

    Ten are posted while the bulk lies in the inbox, and ten when all of it waits for its agent.
    """
    began = time.monotonic()
    for start in range(0, tasks, POST):
        api.post([_posting("bulk", number) for number in range(start, min(tasks, start + POST))])
    found = {"posted": time.monotonic() - began}
    found["inbox"] = _few("inbox")
    wait_for(lambda: not Submission.objects.exists(), "the inbox is taken", PATIENCE)
    found["taken"] = time.monotonic() - began
    found["before"] = _rate()
    before, started = _done(), time.monotonic()
    found["agent"] = _few("agent")
    let_pass(max(0.0, WINDOW - (time.monotonic() - started)))
    found["after"] = (_done() - before) / (time.monotonic() - started)
    found["left"] = tasks - _done()
    return found


def _few(key: str) -> float:
    """Post ten tasks of a key; return the seconds until all of them have ended."""
    began = time.monotonic()
    api.post([_posting(key, number) for number in range(FEW)])
    ended = Task.objects.filter(
        reference__in=[f"{key}-{number}" for number in range(FEW)], state="processed"
    )
    wait_for(lambda: ended.count() == FEW, "the ten have ended", PATIENCE)
    return time.monotonic() - began


def _posting(key: str, number: int) -> api.Posting:
    reference = f"{key}-{number}"
    return api.Posting(
        workflow=WORKFLOW, reference=reference, data={"order": reference}, fairness_key=key
    )


def _rate() -> float:
    before, began = _done(), time.monotonic()
    let_pass(WINDOW)
    return (_done() - before) / (time.monotonic() - began)


def _done() -> int:
    return Task.objects.filter(fairness_key="bulk", state="processed").count()


if __name__ == "__main__":
    do, count = sys.argv[1:]
    sys.stdout.write(json.dumps({"claim": claim, "load": load}[do](int(count))) + "\n")
