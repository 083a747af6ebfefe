"""Measures the engine for `bench.fair`: `python -m bench.engine.fair <tasks>` prints JSON."""

import json
import sys
import time

import django

django.setup()

from bench.engine.client import WORKFLOW  # noqa: E402 - the models need django.setup()
from drill.waiting import pause, wait_for  # noqa: E402
from orchestration import api  # noqa: E402
from orchestration.models import Submission, Task  # noqa: E402

BATCH = 500  # tasks in one statement
FEW = 10
PATIENCE = 600.0  # seconds
WINDOW = 5.0  # seconds over which a rate is measured


def load(tasks: int) -> dict[str, float]:
    """Return the seconds that ten tasks take behind many of another key, and the rate of these.

    Ten are submitted while the bulk is in the inbox, and ten once all of it waits for its agent. Rates
    are in tasks per second.
    """
    began = time.monotonic()
    for start in range(0, tasks, BATCH):
        api.submit_many(
            [_posting("bulk", number) for number in range(start, min(tasks, start + BATCH))]
        )
    figures = {"posted": time.monotonic() - began}
    figures["inbox"] = _few("inbox")
    wait_for(lambda: not Submission.objects.exists(), "the inbox is empty", PATIENCE)
    figures["taken"] = time.monotonic() - began
    figures["before"] = _rate()
    before, started = _done(), time.monotonic()
    figures["agent"] = _few("agent")
    pause(max(0.0, WINDOW - (time.monotonic() - started)))
    figures["after"] = (_done() - before) / (time.monotonic() - started)
    figures["left"] = tasks - _done()
    return figures


def _few(key: str) -> float:
    """Submit ten tasks of a key; return the seconds until all have ended."""
    began = time.monotonic()
    api.submit_many([_posting(key, number) for number in range(FEW)])
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
    pause(WINDOW)
    return (_done() - before) / (time.monotonic() - began)


def _done() -> int:
    return Task.objects.filter(fairness_key="bulk", state="processed").count()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(load(int(sys.argv[1]))) + "\n")
