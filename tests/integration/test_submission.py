"""The submission process: both or neither, once, and a bad one never blocks the others (P18–P20)."""

import pytest
from django.db import transaction

from orchestration import api, jobs, queues, registry, submission
from orchestration.models import Alert, StatusMessage, Submission, Task
from orchestration.workflow import Refused, Workflow

pytestmark = pytest.mark.django_db


def post(reference, **fields):
    known = {"workflow": "greet", "data": {"name": "Ada"}}
    return Submission.objects.create(reference=reference, **{**known, **fields})


@pytest.fixture
def recording(monkeypatch):
    """Have the workflow keep what its application was asked to record; `bad` ones are refused."""
    seen = []

    def record(batch):
        for one in batch:
            if one.data.get("bad"):
                raise (one.data["bad"] == "bug" and KeyError("a mistake")) or Refused("it is bad")
        seen.extend(one.reference for one in batch)

    greet = registry.workflows["greet"]
    workflow = Workflow(name=greet.name, steps=greet.steps, record=record)
    monkeypatch.setitem(registry.workflows, "greet", workflow)
    return seen


def test_a_batch_becomes_tasks_and_is_forgotten(recording):
    for number in range(5):
        post(f"t{number}")
    assert submission.take(100) == 5
    assert sorted(Task.objects.values_list("reference", flat=True)) == [f"t{n}" for n in range(5)]
    assert recording == [f"t{n}" for n in range(5)]
    assert not Submission.objects.exists()


def test_posting_twice_is_posting_once(django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(2):
            api.submit("greet", reference="1", data={"name": "Ada"})
    assert Submission.objects.count() == 1
    jobs.take_submissions()
    with django_capture_on_commit_callbacks(execute=True):
        api.submit("greet", reference="1", data={"name": "Ada"})
    jobs.take_submissions()
    assert Task.objects.count() == 1
    assert not Submission.objects.exists()


def test_the_same_reference_with_other_content_is_set_aside():
    post("1")
    submission.take(10)
    post("1", data={"name": "Eve"})
    submission.take(10)
    assert Task.objects.get().data == {"name": "Ada"}
    assert "taken by a task with other content" in Submission.objects.get().reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"workflow": "nope"}, "there is no workflow 'nope'"),
        ({"data": {}}, "the input has no name"),
        ({"data": ["name"]}, "not a JSON object"),
        ({"data": {"name": "x", "bad": True}}, "it is bad"),
        ({"data": {"name": "x", "bad": "bug"}}, "a mistake"),
    ],
)
def test_a_bad_one_is_set_aside_and_does_not_hold_up_the_others(recording, fields, reason):
    post("before")
    post("bad", **fields)
    post("after")
    jobs.take_submissions()
    assert set(Task.objects.values_list("reference", flat=True)) == {"before", "after"}
    assert {"before", "after"} <= set(recording)
    left = Submission.objects.get()
    assert left.reference == "bad"
    assert left.refused_at is not None
    assert reason in left.reason
    assert Alert.objects.get().fingerprint == f"submission/{left.workflow}"
    jobs.take_submissions()  # and is not looked at again
    assert Submission.objects.get().refused_at == left.refused_at


def test_both_or_neither(recording, monkeypatch):
    post("1")

    class Death(BaseException):
        """What no code of ours catches."""

    def broken(_):
        raise Death

    monkeypatch.setattr(submission, "create", broken)
    with pytest.raises(Death):
        submission.take(10)
    monkeypatch.undo()
    assert Submission.objects.filter(refused_at=None).count() == 1
    assert not Task.objects.exists()


def test_redis_away_is_not_the_customers_problem(django_capture_on_commit_callbacks, monkeypatch):
    monkeypatch.setattr("django.conf.settings.REDIS_URL", "redis://127.0.0.1:1/0")
    queues._connection.cache_clear()
    try:
        with django_capture_on_commit_callbacks(execute=True):
            api.submit("greet", reference="1", data={"name": "Ada"})
    finally:
        queues._connection.cache_clear()
    assert Submission.objects.count() == 1


def test_nothing_is_posted_by_a_transaction_that_rolls_back():
    def post_and_fail():
        with transaction.atomic():
            api.submit("greet", reference="1", data={"name": "Ada"})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        post_and_fail()
    assert not Submission.objects.exists()


def test_what_it_writes_reaches_only_the_named_application(monkeypatch):
    told = []
    monkeypatch.setitem(registry.receivers, "one", told.extend)
    post("1", reply_to="one")
    post("2", reply_to="two")
    post("3")
    submission.take(10)
    jobs.deliver_status("one")
    (status,) = told
    assert (status.reference, status.number, status.kind) == ("1", 1, "received")
    assert StatusMessage.objects.get().reply_to == "two"
