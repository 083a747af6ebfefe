"""How long a scheduler's turn takes, and holds the gate, by the number of replies; run in a testbed.

Prints JSON: replies → [seconds until the gate is asked for, seconds from then to the end of the commit].
"""

import json
import sys
import time
from statistics import median

import django

SIZES, ROUNDS = (1, 50, 200), 15


def main() -> None:
    """Measure on the database of the environment, while nothing else works there."""
    django.setup()
    print(json.dumps({size: _turns(size) for size in SIZES}))


def _turns(size: int) -> list[float]:
    from django.db import transaction

    from orchestration.transitions.claim import claim
    from orchestration.transitions.create import NewTask, create
    from orchestration.transitions.replies import Recorded, decide

    began = str(time.time_ns())
    with transaction.atomic():
        create(
            [
                NewTask(workflow="three_calls", reference=f"{began}-{n}", data={"order": str(n)})
                for n in range(size)
            ]
        )
    requests = claim(["caller"], "bench").requests["caller"]
    before, held = [], []
    for _ in range(ROUNDS):
        replies = [_reply(request) for request in requests]
        started = time.perf_counter()
        with transaction.atomic():
            recorded = Recorded()
            decide(replies, recorded)
            recorded.write()
            asked = time.perf_counter()
            claimed = claim(["caller"], "bench", recorded.observed, recorded.ready)
        ended = time.perf_counter()
        requests = claimed.requests["caller"]
        assert len(requests) == size, "each reply makes a step ready, which is claimed"
        before.append(asked - started)
        held.append(ended - asked)
    return [median(before), median(held)]


def _reply(request: object) -> object:
    from orchestration.messaging.messages import Reply, Request

    assert isinstance(request, Request)
    now = time.time()
    return Reply(
        step=request.step, task=request.task, attempt=request.attempt, outcome="done",
        result={"id": "c_1"}, code="", message="", tries=1, started=now, ended=now, by="bench",
        generation=request.generation, dispatch=request.dispatch,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
