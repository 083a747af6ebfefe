"""Submit orders and report about them, run in a stack's environment."""

import json
import sys
from collections.abc import Callable
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import django


def submit(workflow: str, reference: str, **data: Any) -> None:
    """Submit an order."""
    from orchestration.api import submit as post

    post(workflow, reference=reference, data={"order": reference, **data})


def complete(workflow: str, reference: str, step: str, **end: Any) -> None:
    """Report how a step ends; the same report has the same id."""
    from orchestration.api import complete as report

    known = uuid5(NAMESPACE_URL, f"{reference} {step} {end}")
    report(workflow, reference, step, actor="test", id=known, **end)


def decide(workflow: str, reference: str, step: str, before: float, **end: Any) -> None:
    """Report it `before` seconds before its time ends."""
    from drill.waiting import wait_for
    from orchestration.database import clock
    from orchestration.models import Step, Wait

    def is_time() -> bool:
        wait = Wait.objects.filter(step__name=step, task__reference=reference).first()
        if wait is None or wait.ends_by is None:  # before its wait, or, on a busy machine, after it
            ended = Step.objects.filter(
                name=step, task__reference=reference, ended_at__isnull=False
            )
            return ended.exists()
        return (wait.ends_by - clock.database_now()).total_seconds() <= before

    wait_for(is_time, f"{reference} is about to end", 60, pause=0.005)
    complete(workflow, reference, step, **end)


ACTS: dict[str, Callable[..., None]] = {"submit": submit, "complete": complete, "decide": decide}


def main(acts: str) -> None:
    """Do acts, each a name with its arguments, as JSON."""
    django.setup()
    for name, arguments in json.loads(acts):
        ACTS[name](**arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
