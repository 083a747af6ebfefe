"""Loads this engine: `python -m bench.engine.client`."""

from collections.abc import Iterable, Sequence

import django

django.setup()

from django.db import connection  # noqa: E402 - the models need django.setup()

from bench.client import Client, serve  # noqa: E402
from orchestration import api  # noqa: E402
from orchestration.messaging import queues  # noqa: E402
from orchestration.models import Submission, Task  # noqa: E402
from orchestration.states import LIVE_TASK_STATES, TaskState  # noqa: E402

WORKFLOW = "three_calls"


class Engine:
    """Inserts submissions as `api.submit` does, and reads the states of tasks."""

    def submit(self, references: Sequence[str]) -> None:
        """Submit one task by the API; insert the same rows for many."""
        if len(references) == 1:
            (reference,) = references
            api.submit(WORKFLOW, reference=reference, data={"order": reference})
            return
        Submission.objects.bulk_create(
            Submission(workflow=WORKFLOW, reference=reference, data={"order": reference})
            for reference in references
        )
        queues.try_to_ring(queues.SUBMISSION)

    def finished(self, references: Iterable[str]) -> set[str]:
        """Select the states of tasks."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT reference FROM orchestration_task"
                " WHERE reference = ANY(%s) AND state = 'processed'",
                [list(references)],
            )
            return {reference for (reference,) in cursor}

    def settled(self, run: str, count: int) -> bool:
        """Check for unfinished work, which an index makes cheap; count once when there is none."""
        if Submission.objects.exists() or Task.objects.filter(state__in=LIVE_TASK_STATES).exists():
            return False
        tasks = Task.objects.filter(reference__startswith=f"{run}-", state=TaskState.PROCESSED)
        if (done := tasks.count()) != count:
            raise RuntimeError(f"{done} of {count} tasks of {run} were processed")
        return True


if __name__ == "__main__":
    serve(Client(Engine()))
