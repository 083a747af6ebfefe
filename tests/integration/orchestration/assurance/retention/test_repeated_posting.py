"""A submission that is posted again while its old task is removed is dropped."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from orchestration import submission
from orchestration.api import submit
from orchestration.assurance.retention import removal
from orchestration.models import RemovedTask, StatusMessage, Submission, Task
from orchestration.models.fields import DatabaseNow
from tests.support.engine import run_to_end
from tests.support.together import at_once

LONG_AGO = timedelta(days=2)


class RemoveAfter:
    """Has another session remove a task after the first statement that looks for removed ones."""

    def __init__(self, task):
        self.task, self.removed = task, 0

    def __call__(self, execute, statement, parameters, many, context):
        rows = execute(statement, parameters, many, context)
        if not self.removed and "orchestration_removedtask" in str(statement):
            before = timezone.now() - timedelta(days=1)
            acts = {"remove": lambda: removal.remove("greet", [self.task], before)}
            self.removed = at_once(acts)["remove"]
        return rows


@pytest.fixture
def repeated():
    """An old task, and its submission posted again."""
    submit("greet", reference="42", data={"name": "Ada"})
    submission.take(10)
    run_to_end(Task.objects.get())
    StatusMessage.objects.all().delete()
    Task.objects.update(ended_at=DatabaseNow() - LONG_AGO)
    submit("greet", reference="42", data={"name": "Ada"})
    return Task.objects.get()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", ["split", "adopted"])
def test_repeated_posting_beside_the_removal_of_its_task_is_dropped(repeated, way):
    remove = RemoveAfter(repeated.id)
    with connection.execute_wrapper(remove):
        if way == "split":
            rows = Submission.objects.filter(reference="42")
            submission._take(rows)  # as each part of a batch that was split
        else:
            submission.adopt("greet", "42", repeated.id)
    assert remove.removed == 1
    assert not Task.objects.exists()
    assert RemovedTask.objects.count() == 1
