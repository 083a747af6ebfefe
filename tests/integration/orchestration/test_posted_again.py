"""A submission that is posted again is compared with what was posted, not with what was amended since."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from orchestration import registry, submission, task_requests
from orchestration.api import Amendment, request_undo, submit
from orchestration.assurance.retention import removal
from orchestration.models import (
    Alert,
    RemovedTask,
    StatusMessage,
    Submission,
    Task,
    TaskRequest,
)
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.resubmit import resubmit
from orchestration.transitions.undo import undo
from tests.support.engine import in_error

pytestmark = pytest.mark.django_db
POSTED = {"name": "Ada", "gift": {"wrap": True, "card": "Get well"}}
TURNED = {"gift": {"card": "Get well", "wrap": True}, "name": "Ada"}  # as another program writes it
AMENDED = {**POSTED, "name": "Eve"}


def post(data, reference="7"):
    """Post by SQL, as another program may: `submit` is one of several doors."""
    return Submission.objects.create(workflow="greet", reference=reference, data=data)


def take():
    submission.take(10)


def take_part():
    """Take as each part of a batch that was split."""
    rows = Submission.objects.filter(reference="7")
    try:
        submission._take(rows)
    except submission.Refused as error:
        submission.failed_submissions.fail(rows.get().id, error)


def taken(reference="7"):
    submit("greet", reference=reference, data=POSTED)
    submission.take(10)
    return Task.objects.get(reference=reference)


def amended(reference="7"):
    """Return a task whose input was changed after it was posted."""
    step = in_error(taken(reference), "rejected")
    change = Amendment(data={"name": "Eve"})
    assert resubmit(step.id, attempt=step.attempt, actor="a", reason="r", amendment=change) is None
    task = Task.objects.get(reference=reference)
    assert task.data == AMENDED
    return task


def remove(task):
    """Remove a task as one that ended long ago."""
    assert undo(task.id, actor="a", reason="r") is None
    StatusMessage.objects.all().delete()
    Task.objects.filter(id=task.id).update(ended_at=DatabaseNow() - timedelta(days=2))
    assert removal.remove("greet", [task.id], _tomorrow()) == 1


def _tomorrow():
    return Task.objects.latest("created_at").created_at + timedelta(days=1)


def is_dropped():
    return not Submission.objects.exists() and not alerts_of_submissions()


def is_refused():
    reason = Submission.objects.get().reason
    return "other content" in reason and alerts_of_submissions() == ["submission/greet"]


def alerts_of_submissions():
    rows = Alert.objects.filter(fingerprint__startswith="submission/", severity="critical")
    return list(rows.values_list("fingerprint", flat=True))


@pytest.mark.parametrize("data", [POSTED, TURNED], ids=["same", "turned"])
@pytest.mark.parametrize("look", [take, take_part])
def test_posting_is_dropped_after_its_task_was_amended(look, data):
    amended()
    post(data)
    look()
    assert is_dropped()
    assert Task.objects.get().data == AMENDED


def test_posting_is_dropped_beside_a_restore_after_its_task_was_amended():
    task = amended()
    post(POSTED)
    assert submission.adopt("greet", "7", task.id)
    assert is_dropped()


@pytest.mark.parametrize("data", [AMENDED, {**POSTED, "name": "Bob"}], ids=["amended", "other"])
@pytest.mark.parametrize("look", [take, take_part])
def test_posting_with_other_data_than_was_posted_is_refused(look, data):
    amended()
    post(data)
    look()
    assert is_refused()
    assert Task.objects.count() == 1


@pytest.mark.parametrize("data", [POSTED, TURNED], ids=["same", "turned"])
def test_posting_is_dropped_after_its_amended_task_was_removed(data):
    remove(amended())
    post(data)
    submission.take(10)
    assert is_dropped()
    assert (Task.objects.count(), RemovedTask.objects.count()) == (0, 1)


def test_posting_with_the_input_that_a_removed_task_had_at_last_is_refused():
    remove(amended())
    post(AMENDED)
    submission.take(10)
    assert is_refused()


def test_task_of_an_older_release_is_compared_by_its_present_input():
    amended("7")
    taken("8")
    Task.objects.update(posted=None)
    post(AMENDED, "7")
    post(POSTED, "8")
    submission.take(10)
    assert is_dropped()
    post(POSTED, "7")
    submission.take(10)
    assert is_refused()


def test_removed_task_of_an_older_release_is_compared_by_its_last_input():
    task = amended()
    Task.objects.update(posted=None)
    remove(task)
    post(AMENDED)
    submission.take(10)
    assert is_dropped()


def test_private_part_of_a_posting_is_not_compared(monkeypatch):
    greet = replace(registry.workflows["greet"], private=("address",))
    monkeypatch.setitem(registry.workflows, "greet", greet)
    amended()
    post({**POSTED, "address": "Elm Street 1"})
    submission.take(10)
    assert is_dropped()


def test_many_are_compared_in_as_many_statements_as_a_few(django_assert_max_num_queries):
    for number in range(20):
        taken(str(number))
    Task.objects.update(data=AMENDED)
    for number in range(10):
        remove(Task.objects.get(reference=str(number)))
    for number in range(20):
        post(POSTED, str(number))
    with django_assert_max_num_queries(6):
        assert submission.take(100) == 20
    assert is_dropped()


def test_request_does_not_wait_for_a_posting_with_the_reference_of_a_removed_task():
    remove(amended())
    post({**POSTED, "name": "Bob"})
    submission.take(10)
    assert is_refused()
    request_undo("greet", "7", actor="customer", reason="no", id=uuid4())
    assert task_requests.take(10).done == 1
    assert TaskRequest.objects.get().refusal == "NO_SUCH_TASK"
