"""What `bench.fair` asks of the engine: `python -m bench.engine.fair claim|load <tasks>`, as JSON."""

import json
import sys
import time
from collections.abc import Sequence
from statistics import median

import django

django.setup()

from django.db import connection, transaction  # noqa: E402 - the models need django.setup()

from bench.engine.client import WORKFLOW  # noqa: E402
from drill.waiting import let_pass, wait_for  # noqa: E402
from orchestration import api, conf  # noqa: E402
from orchestration.models import Policy, Submission, Task  # noqa: E402
from orchestration.transitions import NewTask, create  # noqa: E402
from orchestration.transitions import claim as claim_steps  # noqa: E402
from orchestration.transitions.claim import DUE  # noqa: E402

AGENT = "caller"
POST = 500  # tasks in one statement
FEW = 10
PATIENCE = 600.0  # seconds
WINDOW = 5.0  # seconds over which a rate is measured
KEYS = 20
ROUNDS, CLAIMS = 7, 30
WITH = [
    "CREATE INDEX step_turn ON orchestration_step (agent, alone, priority DESC, turn, id) {where}",
    "CREATE INDEX step_line ON orchestration_step (agent, priority, fairness_key, turn) {where}",
]
WITHOUT = ["CREATE INDEX step_age ON orchestration_step (agent, alone, priority DESC, id) {where}"]
WHERE = "WHERE process_state = 'pending' AND run_after IS NULL AND held_by_id IS NULL"
BY_TURN, BY_AGE = DUE, DUE.replace("s.turn, s.id", "s.id")


def claim(tasks: int) -> dict[str, float]:
    """Return what a claim of a batch costs in ms, by turn and by age, with so many waiting.

    Both are measured in turn, on the same rows, each with the indexes that it needs. Each claim is
    rolled back, so that the next finds the same.
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
    took: dict[str, list[float]] = {"with": [], "without": []}
    for _ in range(ROUNDS):
        took["without"] += _claims(BY_AGE, WITHOUT)
        took["with"] += _claims(BY_TURN, WITH)
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE orchestration_task CASCADE")
    policies.update(window=window)
    return {name: median(values) for name, values in took.items()}


def _claims(due: str, indexes: Sequence[str]) -> list[float]:
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX IF EXISTS step_turn, step_line, step_age")
        for index in indexes:
            cursor.execute(index.format(where=WHERE))
        cursor.execute("VACUUM ANALYZE orchestration_step")
        cursor.execute("VACUUM ANALYZE orchestration_task")
    sys.modules["orchestration.transitions.claim"].DUE = due  # type: ignore[attr-defined]
    took = []
    for _ in range(CLAIMS):
        with transaction.atomic():
            began = time.perf_counter()
            claimed = claim_steps([AGENT], "bench").requests[AGENT]
            took.append((time.perf_counter() - began) * 1000)
            transaction.set_rollback(True)
        if len(claimed) < conf.BATCH:
            raise RuntimeError(f"{len(claimed)} steps were claimed, not a batch")
    return took[5:]  # the first ones read into the caches


def load(tasks: int) -> dict[str, float]:
    """Return how long ten tasks take behind so many of another key, and the rate of these, in tasks/s.

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
