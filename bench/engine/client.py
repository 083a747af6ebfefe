"""Drives this engine: `python -m bench.engine.client`."""

from collections.abc import Iterable, Sequence

import django

django.setup()

from django.db import connection  # noqa: E402 - the models need django.setup()

from bench.client import Client, serve  # noqa: E402
from orchestration import api, queues  # noqa: E402
from orchestration.models import Submission, Task  # noqa: E402
from orchestration.states import LIVE_TASK_STATES, TaskState  # noqa: E402

WORKFLOW = "three_calls"


class Engine:
    """Posts rows and rings, as `submit` does; a task has ended when its row says so."""

    def submit(self, references: Sequence[str]) -> None:
        """Post one by the public face; many in one insert of the same rows."""
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
        """Ask the task rows."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT reference FROM orchestration_task"
                " WHERE reference = ANY(%s) AND state = 'processed'",
                [list(references)],
            )
            return {reference for (reference,) in cursor}

    def settled(self, run: str, count: int) -> bool:
        """Look for work that is left (by index, cheaply); count once when there is none."""
        if Submission.objects.exists() or Task.objects.filter(state__in=LIVE_TASK_STATES).exists():
            return False
        tasks = Task.objects.filter(reference__startswith=f"{run}-", state=TaskState.PROCESSED)
        if (done := tasks.count()) != count:
            raise RuntimeError(f"{done} of {count} tasks of {run} were processed")
        return True


if __name__ == "__main__":
    serve(Client(Engine()))
