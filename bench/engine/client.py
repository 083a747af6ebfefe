"""Loads this engine: `python -m bench.engine.client`; with `bank` or `parcels`, by those flows."""

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import django

django.setup()

from django.db import connection, transaction  # noqa: E402 - the models need django.setup()

from bench.client import Client, serve  # noqa: E402
from orchestration import api, registry  # noqa: E402
from orchestration.database import prepared  # noqa: E402
from orchestration.models import Task  # noqa: E402
from orchestration.states import TaskState  # noqa: E402

WORKFLOW = "three_calls"
WORKFLOWS = [name for name in registry.workflows if name.startswith(WORKFLOW)]  # one for each agent
# by submission_age and task_due
UNFINISHED = """
SELECT EXISTS (SELECT FROM orchestration_submission WHERE refused_at IS NULL AND retry_at IS NULL)
    OR EXISTS (SELECT FROM orchestration_task
        WHERE state IN ('pending', 'processing', 'undoing') AND NOT overdue)
"""
ENDED = """
SELECT reference FROM orchestration_task
WHERE reference = ANY(%(references)s) AND state = 'processed'
"""
# by task_by_end; what takes longer from its last statement to its commit is found by reference
LATELY_ENDED = """
SELECT reference FROM orchestration_task
WHERE ended_at > (SELECT clock_timestamp()) - interval '0.1 s' AND state = 'processed'
"""
SURELY = 1.0  # seconds


class Engine:
    """Posts tasks by the API, and reads their states."""

    data: Mapping[str, Any] = {}

    def __init__(self) -> None:
        self.looked_at = -SURELY
        self.workflows = cycle(WORKFLOWS)

    def submit(self, references: Sequence[str]) -> None:
        """Post all tasks in one statement."""
        api.submit_many(
            [
                api.Posting(
                    workflow=workflow, reference=reference, data={"order": reference, **self.data}
                )
                for workflow, reference in zip(self.workflows, references, strict=False)
            ]
        )

    def finished(self, references: Iterable[str]) -> set[str]:
        """Select the tasks that ended a moment ago and, each second, any of them by reference."""
        now = time.monotonic()
        if now - self.looked_at < SURELY:
            rows = prepared.run(LATELY_ENDED, {})
        else:
            self.looked_at = now
            rows = prepared.run(ENDED, {"references": list(references)})
        return {reference for (reference,) in rows}.intersection(references)

    def settled(self, run: str, count: int) -> bool:
        """Check for unfinished work, which an index makes cheap; count once when there is none."""
        with connection.cursor() as cursor:
            cursor.execute(UNFINISHED)
            if cursor.fetchone() != (False,):
                return False
        tasks = Task.objects.filter(
            reference__startswith=f"{run}-", parent=None, state=TaskState.PROCESSED
        )
        if (done := tasks.count()) != count:
            raise RuntimeError(f"{done} of {count} tasks of {run} were processed")
        return True


class Bank(Engine):
    """Posts orders, and at once what the bank says of them: each waits for that."""

    def submit(self, references: Sequence[str]) -> None:
        """Post all tasks, then all reports, as the bank's webhooks would."""
        self.workflows = cycle(["bank"])
        super().submit(references)
        with transaction.atomic():
            for reference in references:
                event = uuid5(NAMESPACE_URL, reference)
                api.complete("bank", reference, "pay", result={}, actor="bank", id=event)


class Parcels(Engine):
    """Posts orders of three parcels; each parcel is a child."""

    data = {"warehouses": [1, 2, 3]}

    def __init__(self) -> None:
        super().__init__()
        self.workflows = cycle(["parcels"])


FLOWS = {"bank": Bank, "parcels": Parcels}

if __name__ == "__main__":
    serve(Client(FLOWS.get(sys.argv[-1], Engine)()))
