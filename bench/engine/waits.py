"""Makes tasks for `bench.waits` whose step is awaited: `python -m bench.engine.waits <tasks>`."""

import sys

import django

django.setup()

from drill.waiting import wait_for  # noqa: E402 - the models need django.setup()
from orchestration import api  # noqa: E402
from orchestration.models import Wait  # noqa: E402

PATIENCE = 300.0  # seconds


def accept(tasks: int) -> None:
    """Submit tasks, and wait until the service has accepted all of them."""
    known = Wait.objects.count()
    api.submit_many(
        [
            api.Posting(
                workflow="confirmed", reference=f"awaited-{n}", data={"order": f"awaited-{n}"}
            )
            for n in range(known, known + tasks)
        ]
    )
    wait_for(lambda: Wait.objects.count() == known + tasks, "all are awaited", PATIENCE)


if __name__ == "__main__":
    accept(int(sys.argv[1]))
