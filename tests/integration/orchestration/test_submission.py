"""The submission process: both or neither, once, and a bad one never blocks the others (P18–P20)."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from orchestration import api, conf, registry, submission
from orchestration.alerting import alerts
from orchestration.cluster.debounce import Pauses
from orchestration.messaging import queues
from orchestration.models import Alert, StatusMessage, Submission, Task
from orchestration.models.fields import DatabaseNow
from orchestration.payloads.placeholders import Unresolved
from orchestration.registry import NotRegistered
from orchestration.workers import jobs
from orchestration.workflows.workflow import Refused, Workflow

pytestmark = pytest.mark.django_db
PATIENCE = 5  # failures in succession before a turn ends


def post(reference, **fields):
    known = {"workflow": "greet", "data": {"name": "Ada"}}
    return Submission.objects.create(reference=reference, **{**known, **fields})


@pytest.fixture
def recording(monkeypatch):
    """Have the workflow keep what its application was asked to record; `bad` ones are refused."""
    seen = []

    def record(batch):
        for row in batch:
            if row.data.get("bad"):
                raise (row.data["bad"] == "bug" and KeyError("a mistake")) or Refused("it is bad")
        seen.extend(row.reference for row in batch)

    greet = registry.workflows["greet"]
    workflow = Workflow(name=greet.name, steps=greet.steps, record=record)
    monkeypatch.setitem(registry.workflows, "greet", workflow)
    return seen


def test_batch_becomes_tasks_and_is_deleted(recording):
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


def test_same_reference_with_other_content_is_set_aside():
    post("1")
    submission.take(10)
    post("1", data={"name": "Eve"})
    submission.take(10)
    assert Task.objects.get().data == {"name": "Ada"}
    assert "taken by a task with other content" in Submission.objects.get().reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"data": ["name"]}, "not a JSON object"),
        ({"data": {"name": "x", "bad": True}}, "it is bad"),
    ],
)
def test_refused_submission_is_set_aside_and_delays_no_other(recording, fields, reason):
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


@pytest.mark.parametrize(
    ("fields", "problem", "reason"),
    [
        ({"workflow": "gret"}, "unknown", "there is no workflow 'gret'; did you mean 'greet'?"),
        ({"data": {"nmae": 1}}, "failing", "the input has no name (did you mean 'nmae'?)"),
        ({"data": {"name": "x", "bad": "bug"}}, "failing", "KeyError: 'a mistake'"),
    ],
)
def test_failed_submission_is_retried_and_delays_no_other(recording, fields, problem, reason):
    post("before")
    bad = post("bad", **fields)
    post("after")
    began = timezone.now()
    submission.take(100)
    assert {"before", "after"} <= set(Task.objects.values_list("reference", flat=True))
    left = Submission.objects.get()
    assert (left.id, left.tries, left.refused_at, left.problem) == (bad.id, 1, None, problem)
    assert reason in left.reason
    assert began + timedelta(seconds=0.5) <= left.retry_at <= timezone.now() + timedelta(seconds=1)
    shift_retries(hours=1)  # a busy machine may take longer than its own time
    submission.take(100)
    assert Submission.objects.get().tries == 1  # its time has not come
    assert not Alert.objects.exists()  # it may be a hiccup
    let_pass()
    began = timezone.now()
    submission.take(100)
    again = Submission.objects.get()
    assert again.tries == 2
    assert began + timedelta(seconds=1) <= again.retry_at <= timezone.now() + timedelta(seconds=2)
    alert = Alert.objects.get()
    assert (alert.fingerprint, alert.severity) == (
        f"submission/{left.workflow}/{problem}",
        "warning",
    )
    assert reason in alert.detail
    while Submission.objects.get().tries < conf.ALERT_AFTER_FAILURES:
        let_pass()
        submission.take(100)
    stuck = Alert.objects.get(severity="critical")
    assert stuck.fingerprint == f"submission/{left.workflow}/stuck"
    assert alerts.close_recovered() == 0
    Submission.objects.update(workflow="greet", data={"name": "Ada"})  # the deploy is over
    let_pass()
    submission.take(100)
    assert Task.objects.filter(reference="bad").exists()
    assert alerts.close_recovered() == 2
    assert not Alert.objects.filter(closed_at=None).exists()


def shift_retries(hours):
    Submission.objects.update(retry_at=F("retry_at") + timedelta(hours=hours))


def let_pass():
    """Have the time of every retry come."""
    shift_retries(hours=-2)


def test_bad_release_tries_few_and_delays_no_other_workflow(monkeypatch, recording):
    greet = registry.workflows["greet"]
    monkeypatch.setitem(registry.workflows, "other", replace(greet, name="other"))
    monkeypatch.setattr(submission, "_paused", Pauses())
    for number in range(50):
        post(f"bad-{number}", data={"name": "x", "bad": "bug"})
    for number in range(10):
        post(f"good-{number}", workflow="other")
    while submission.take(20):
        pass
    assert set(recording) == {f"good-{number}" for number in range(10)}
    assert Submission.objects.filter(tries=1).count() == PATIENCE
    assert Submission.objects.filter(tries=0, reason="").count() == 50 - PATIENCE
    assert submission.take(20) == 0  # it is left alone for a while, whichever process rings
    submission._paused["fresh", "greet"] -= conf.FAILING_WORKFLOW_PAUSE_S
    Submission.objects.filter(tries=0).update(data={"name": "Ada"})
    while submission.take(20):
        pass
    assert Submission.objects.count() == PATIENCE


@pytest.mark.parametrize("bad", [30, 300])
def test_failing_submissions_delay_no_later_ones_of_their_workflow(monkeypatch, recording, bad):
    monkeypatch.setattr(submission, "_paused", Pauses())
    for number in range(bad):
        post(f"bad-{number}", data={"name": "x", "bad": "bug"})
    for number in range(10):
        post(f"good-{number}")
    for _ in range(2):  # no pause ends meanwhile
        submission.take(200)
    assert sorted(recording) == [f"good-{number}" for number in range(10)]
    assert ("fresh", "greet") not in submission._paused


def test_retries_delay_no_new_submission_and_are_few(monkeypatch, recording):
    monkeypatch.setattr(submission, "_paused", Pauses())
    for number in range(30):
        post(f"bad-{number}", data={"name": "x", "bad": "bug"}, problem="failing", tries=3,
             retry_at=DatabaseNow())  # fmt: skip
    for turn in range(3):
        post(f"good-{turn}")
        submission.take(200)
        assert recording == [f"good-{number}" for number in range(turn + 1)]
    assert Submission.objects.filter(tries=4).count() == PATIENCE
    assert submission._paused.keys() == {("retries", "greet")}


def test_few_transactions_are_tried_when_all_fail(monkeypatch, recording):
    monkeypatch.setattr(submission, "_paused", Pauses())
    tried = []
    broken = replace(registry.workflows["greet"], record=lambda _: tried.append(1) or 1 / 0)
    monkeypatch.setitem(registry.workflows, "greet", broken)
    for number in range(200):
        post(f"fresh-{number}")
        post(f"again-{number}", problem="failing", tries=3, retry_at=DatabaseNow())
    for _ in range(10):
        submission.take(200)
    assert len(tried) < 2 * (PATIENCE + 20)  # of each line: a few, and the halves they are found by


def test_refused_submissions_delay_no_other(monkeypatch, recording):
    monkeypatch.setattr(submission, "_paused", Pauses())
    for number in range(25):
        post(f"bad-{number}", data={"name": "x", "bad": True})
    post("good")
    while submission.take(20):
        pass
    assert recording == ["good"]
    assert Submission.objects.filter(refused_at__isnull=False).count() == 25
    assert not submission._paused


def test_thousand_of_an_unknown_workflow_fail_without_an_error(
    recording, django_assert_max_num_queries
):
    for number in range(100):
        post(f"new-{number}", workflow="new")
    post("good")
    with django_assert_max_num_queries(12):
        assert submission.take(200) == 101
    assert recording == ["good"]
    assert Submission.objects.filter(problem="unknown", tries=1).count() == 100


def test_both_or_neither(recording, monkeypatch):
    post("1")

    class Death(BaseException):
        """An exception that no code of the engine catches."""

    def broken(*_):
        raise Death

    monkeypatch.setattr(submission, "create", broken)
    with pytest.raises(Death):
        submission.take(10)
    monkeypatch.undo()
    assert Submission.objects.filter(refused_at=None).count() == 1
    assert not Task.objects.exists()


def test_unavailable_redis_does_not_affect_the_customer(
    django_capture_on_commit_callbacks, monkeypatch
):
    monkeypatch.setattr("django.conf.settings.REDIS_URL", "redis://127.0.0.1:1/0")
    queues._connection.cache_clear()
    try:
        with django_capture_on_commit_callbacks(execute=True):
            api.submit("greet", reference="1", data={"name": "Ada"})
    finally:
        queues._connection.cache_clear()
    assert Submission.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"workflow": "gret"}, NotRegistered, "no workflow 'gret'; did you mean 'greet'?"),
        ({"data": {"nmae": "Ada"}}, Unresolved, r"no name \(did you mean 'nmae'\?\)"),
        ({"reference": 10}, TypeError, r"write str\(10\)"),
        ({"reference": ""}, ValueError, "the reference '' has not 1 to 100"),
        ({"reference": "x" * 101}, ValueError, "has not 1 to 100"),
        ({"reference": "a\0b"}, ValueError, "has not 1 to 100"),
        ({"priority": 40_000}, ValueError, "the priority 40000 is not between"),
        ({"data": ["name"]}, ValueError, "the data is not a JSON object"),
        ({"data": {"name": object()}}, ValueError, "it is not JSON: Object of type object"),
        ({"data": {"name": float("nan")}}, ValueError, "a number that JSON does not allow"),
        ({"data": {"name": "a\0b"}}, ValueError, "a character of the code 0"),
        ({"data": {"name": "\ud800"}}, ValueError, "half a character"),
    ],
)
def test_submission_that_can_never_be_a_task_is_not_posted(changes, error, words):
    known = {"workflow": "greet", "reference": "1", "data": {"name": "Ada"}}
    good = api.Posting(**{**known, "reference": "good"})
    with pytest.raises(error, match=words):
        api.submit_many([good, api.Posting(**{**known, **changes})])
    assert not Submission.objects.exists()  # and the caller's transaction goes on


def test_any_json_is_posted_unchanged():
    data = {"name": "Ada \\u0000 \U0001f600", "more": [1.5, None, True, {"ü": "\u2028"}]}
    api.submit("greet", reference="1", data=data)
    assert Submission.objects.get().data == data


def test_rolled_back_transaction_posts_nothing():
    def post_and_fail():
        with transaction.atomic():
            api.submit("greet", reference="1", data={"name": "Ada"})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        post_and_fail()
    assert not Submission.objects.exists()


def test_messages_reach_only_the_named_application(monkeypatch):
    delivered = []
    monkeypatch.setitem(registry.receivers, "one", delivered.extend)
    post("1", reply_to="one")
    post("2", reply_to="two")
    post("3")
    submission.take(10)
    jobs.deliver_status("one")
    (status,) = delivered
    assert (status.reference, status.number, status.kind) == ("1", 1, "received")
    assert StatusMessage.objects.get().reply_to == "two"


@pytest.mark.django_db(transaction=True)
class TestManySubmissionsOfOneTransaction:
    def submit(self, *references):
        for reference in references:
            api.submit("greet", reference=reference, data={"name": "Ada"})

    def test_say_once_that_redis_is_away(self, settings, tmp_path, caplog):
        settings.REDIS_URL = f"unix://{tmp_path}/absent.sock"
        queues._connection.cache_clear()
        try:
            with transaction.atomic():
                self.submit(*map(str, range(100)))
        finally:
            queues._connection.cache_clear()
        assert len([record for record in caplog.records if "cannot ring" in record.message]) == 1
        assert Submission.objects.count() == 100

    def test_ring_also_if_the_first_of_them_were_rolled_back(self):
        with transaction.atomic():
            with transaction.atomic():
                self.submit("a", "b")
                transaction.set_rollback(True)
            self.submit("c")
            assert not queues.connection().exists(queues.flag(queues.SUBMISSION))
        assert queues.connection().exists(queues.flag(queues.SUBMISSION))
        assert queues.connection().llen(queues.inbox(queues.SUBMISSION)) == 1

    def test_ring_again_for_the_next_transaction(self):
        for reference in "ab":
            with transaction.atomic():
                self.submit(reference, f"{reference}2")
        assert queues.connection().llen(queues.inbox(queues.SUBMISSION)) == 2
