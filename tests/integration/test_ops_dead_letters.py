"""Dead letters: seen on the page, retried and closed by button and by command."""

import html
import json
import re
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration import registry, requeue, standing, status, submission
from orchestration.lasting import Pauses
from orchestration.models import Alert, DeadLetter, Event, StatusMessage, Submission, Task
from orchestration.models.fields import DatabaseNow
from orchestration.requeue import Wanted
from orchestration.workflow import Refused
from tests.engine import new_task, run_to_end
from tests.operators import browser, person, words

pytestmark = pytest.mark.django_db
PAGE = "/ops/dead-letters/"


@pytest.fixture
def release(monkeypatch):
    """The state of the code: what `greet` refuses, whether it is a bad release, what it knows."""
    state = {"refuses": set(), "bad": False}

    def record(batch):
        if state["bad"]:
            raise TypeError("record() takes 1 positional argument")
        for one in batch:
            if one.reference in state["refuses"]:
                raise Refused("there is no such guest")

    greet = registry.workflows["greet"]
    monkeypatch.setitem(registry.workflows, "greet", replace(greet, record=record))
    monkeypatch.setattr(submission, "_paused", Pauses())
    return state


@pytest.fixture
def operator():
    return browser(person("ann", "operate", "requeue", "see_personal"))


def post(reference, workflow="greet"):
    return Submission.objects.create(workflow=workflow, reference=reference, data={"name": "Ada"})


def let_pass():
    """Have the time of every retry come."""
    Submission.objects.update(retry_at=F("retry_at") - timedelta(hours=1))


def take():
    while submission.take(100):
        pass


def command(*arguments):
    out = StringIO()
    call_command("deadletters", *map(str, arguments), stdout=out)
    return json.loads(out.getvalue())


def open_alerts():
    return set(Alert.objects.filter(closed_at=None).values_list("fingerprint", flat=True))


def three_ends(release):
    """Post three that end in three ways: refused, met by a bad release, of an unknown workflow."""
    release["refuses"].add("refused")
    refused, unknown = post("refused"), post("unknown", "wave")
    take()
    release["bad"] = True
    failing = post("failing")
    for _ in range(2):
        let_pass()
        take()
    return refused, failing, unknown


def test_three_ends_are_seen_and_told_apart(release, operator):
    three_ends(release)
    shown = words(operator.get(PAGE))
    assert "3 dead letters" in shown
    for badge, what, reason in [
        ("refused", "refused", "there is no such guest"),
        ("waits", "failing", "TypeError: record() takes 1 positional argument"),
        ("unknown workflow", "unknown", "there is no workflow"),
    ]:
        assert f"{badge} {what} Submission of" in shown
        assert reason in shown
    assert open_alerts() == {
        "submission/greet",
        "submission/greet/failing",
        "submission/wave/unknown",
    }
    seen = {row["subject"]: row["state"] for row in command("list")}
    assert seen == {"refused": "refused", "failing": "waiting", "unknown": "unknown"}
    for state, subject in [("refused", "refused"), ("waiting", "failing"), ("unknown", "unknown")]:
        (row,) = command("list", "--state", state)
        assert row["subject"] == subject
    home = words(operator.get("/ops/"))
    assert "3 dead letters" in home
    assert 'href="/ops/dead-letters/?kind=submission&amp;name=greet"' in operator.get("/ops/").text


@pytest.mark.parametrize("by", ["button", "command"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_each_is_retried_once_its_cause_is_gone(release, operator, monkeypatch, which, by):
    one = three_ends(release)[which]
    release.update(refuses=set(), bad=False)
    monkeypatch.setitem(
        registry.workflows, "wave", replace(registry.workflows["greet"], name="wave")
    )
    before = open_alerts()
    if by == "button":
        answer = operator.post(f"{PAGE}retry/?kind=submission&id={one.id}&back=kind%3Dsubmission")
        assert (answer.status_code, answer["Location"]) == (303, f"{PAGE}?kind=submission")
        assert "1 dead letter is tried again." in words(operator.get(PAGE))
    else:
        given = command("retry", one.id, "--kind", "submission", "--actor", "ann")
        assert given == {"retried": 1}
    take()
    assert Task.objects.filter(reference=one.reference).exists()
    assert len(open_alerts()) == len(before) - 1
    event = Event.objects.get(kind="retried")
    assert (event.actor, event.task) == ("ann", None)
    assert event.detail["target"] == f"{one.workflow} {one.reference}"


@pytest.mark.parametrize("by", ["button", "command"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_each_is_closed_for_a_reason_that_is_kept(release, operator, which, by):
    one = three_ends(release)[which]
    before = open_alerts()
    address = f"{PAGE}close/?kind=submission&id={one.id}"
    if by == "button":
        assert "Say why" in operator.post(address, {"reason": ""}).text
        answer = operator.post(address, {"reason": "they came in person"})
        assert answer.status_code == 303
    else:
        command("close", one.id, "--kind", "submission", "--reason", "they came in person",
                "--actor", "ann")  # fmt: skip
    release.update(refuses=set(), bad=False)
    let_pass()
    take()
    one.refresh_from_db()
    assert one.closed_at is not None
    assert not Task.objects.filter(reference=one.reference).exists()
    assert len(open_alerts()) <= len(before) - 1
    event = Event.objects.get(kind="closed")
    assert (event.actor, event.reason) == ("ann", "they came in person")
    assert standing.set_aside(one.workflow, one.reference) is standing.Aside.CLOSED
    assert one.reference not in [row["subject"] for row in command("list")]
    assert f"closed {one.reference} Submission" in words(operator.get(f"{PAGE}?state=closed"))
    audited = words(operator.get("/ops/audit/"))
    assert "A dead letter or an alert was closed" in audited
    assert "they came in person" in audited
    # somebody else presses late
    late = operator.post(address, {"reason": "again"})
    assert late.status_code == 409
    assert "closed it" in words(late)
    # and changes their mind
    page = operator.get(f"{PAGE}?state=closed").text
    (retry,) = re.findall(r'action="([^"]*retry[^"]*)"', page)
    assert operator.post(html.unescape(retry)).status_code == 303
    one.refresh_from_db()
    assert (one.closed_at, one.refused_at, one.tries, one.reason) == (None, None, 0, "")


def test_all_that_are_shown_are_retried_together(release, operator):
    three_ends(release)
    for number in range(3):
        post(f"more-{number}", "wave")
    take()
    address = f"{PAGE}retry/?state=unknown&name=wave"
    asked = words(operator.get(address))
    assert "Retry 4 dead letters" in asked
    assert not Event.objects.filter(kind="retried").exists()  # to look changes nothing
    operator.post(address, {"reason": "deployed"})
    assert Submission.objects.filter(tries=0, reason="", workflow="wave").count() == 4
    assert Event.objects.filter(kind="retried", reason="deployed").count() == 4
    assert "No dead letter matches" in words(operator.get(f"{PAGE}?name=wave"))
    assert operator.get(address).status_code == 409


def test_only_one_of_a_reference_is_tried_again(release):
    release["refuses"].add("7")
    for _ in range(2):
        post("7")
        take()
    post("8")
    Submission.objects.filter(reference="8").update(refused_at=DatabaseNow(), reason="no")
    post("8")
    assert requeue.retry(Wanted(), by="ann") == 1  # of 7 one, of 8 none: another waits
    assert Submission.objects.filter(reference="7", refused_at=None).count() == 1
    with pytest.raises(CommandError, match="another one has its reference"):
        command(
            "retry", Submission.objects.get(reference="8", reason="no").id, "--kind", "submission"
        )


def test_a_status_message_is_retried_and_closed(operator, monkeypatch):
    told, refuses = [], {"lost"}

    def receive(messages):
        for one in messages:
            if one.reference in refuses:
                raise Refused("no such parcel")
        told.extend((one.reference, one.number) for one in messages)

    monkeypatch.setitem(registry.receivers, "shop", receive)
    task = new_task("lost", reply_to="shop")
    status.deliver("shop", 100)
    message = StatusMessage.objects.get()
    shown = words(operator.get(PAGE))
    assert "refused lost, message 1: Request received Status message to shop" in shown
    assert reverse("ops:task", args=[task.id]) in operator.get(PAGE).text
    operator.post(f"{PAGE}close/?kind=status&id={message.id}", {"reason": "it is moot"})
    assert open_alerts() == set()
    assert Event.objects.get(kind="closed").task == task
    refuses.clear()
    run_to_end(task)
    status.deliver("shop", 100)
    assert told == [("lost", 2)]
    assert command("retry", message.id, "--kind", "status", "--state", "closed") == {"retried": 1}
    status.deliver("shop", 100)
    assert told == [("lost", 2), ("lost", 1)]


def test_a_message_of_an_inbox_is_retried_and_closed(operator):
    letter = DeadLetter.objects.create(
        queue="scheduler", body='{"to": "Ada"}', reason="no", tries=9
    )
    assert "refused message" in words(operator.get(PAGE))
    assert "Ada" not in browser(person("bob", "operate")).get(PAGE).text
    operator.post(f"{PAGE}retry/?kind=inbox&id={letter.id}")
    letter.refresh_from_db()
    assert (letter.tries, letter.retry_at is None) == (0, False)
    assert command("close", letter.id, "--kind", "inbox", "--reason", "a test") == {"closed": 1}
    assert not DeadLetter.objects.exists()
    assert Event.objects.get(kind="closed").detail["target"] == "message of scheduler"


def test_the_command_says_how_many_it_does_not_list(capsys):
    for number in range(60):
        Submission.objects.create(
            workflow="wave", reference=str(number), data={}, refused_at=DatabaseNow(), reason="no"
        )
    assert len(command("list")) == 50
    assert "the newest 50 of 60; see --limit" in capsys.readouterr().err
    assert len(command("list", "--limit", "100")) == 60
    assert capsys.readouterr().err == ""


def test_many_are_retried_in_parts_and_of_one_reference_the_newest(monkeypatch):
    monkeypatch.setattr(requeue, "AT_ONCE", 3)
    for number in range(10):
        Submission.objects.create(
            workflow="wave", reference=str(number % 5), data={}, refused_at=DatabaseNow()
        )
    with CaptureQueriesContext(connection) as asked:
        assert requeue.retry(Wanted(), by="ann", reason="deployed") == 5
    newest = list(Submission.objects.order_by("-id")[:5])
    assert all(row.refused_at is None for row in newest)
    assert Event.objects.filter(kind="retried", actor="ann", reason="deployed").count() == 5
    updates = [one["sql"] for one in asked if "UPDATE orchestration_submission" in one["sql"]]
    assert len(updates) == 4  # each writes the events of its rows
    assert requeue.close(Wanted(), by="ann", reason="no") == 5
    assert Event.objects.filter(kind="closed").count() == 5


@pytest.mark.parametrize(
    "narrowed", ["id=", "id=12x", "id=" + "9" * 19, "kind=submission&id=x", "id={}"]
)
def test_an_address_that_names_no_letter_never_means_all(release, operator, narrowed):
    release["refuses"] = {"1", "2"}
    post("1"), post("2")
    take()
    address = f"{PAGE}close/?{narrowed.format(Submission.objects.first().id)}"
    assert operator.post(address, {"reason": "it is void"}).status_code == 404
    assert not Submission.objects.filter(closed_at__isnull=False).exists()


def test_a_name_that_cannot_be_is_found_nowhere(operator):
    assert operator.get(f"{PAGE}?name=%00").status_code == 200


@pytest.mark.parametrize("kind", [Refused, TypeError])
def test_what_an_error_says_may_be_anything(release, monkeypatch, kind):
    def record(_batch):
        raise kind("a\0b")

    greet = registry.workflows["greet"]
    monkeypatch.setitem(registry.workflows, "greet", replace(greet, record=record))
    post("1")
    take()
    assert "ab" in Submission.objects.get().reason


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["retry"], "say which"),
        (["retry", "7"], "say of which --kind"),
        (["retry", "--all", "--name", "greet"], "say which"),
        (["retry", "7", "--kind", "submission"], "submission 7 is not a dead letter"),
        (["retry", "--name", "gret"], "did you mean 'greet'?"),
        (["close", "--all"], "--reason"),
    ],
)
def test_a_command_that_is_not_understood_says_so(arguments, words):
    with pytest.raises(CommandError) as refused:
        command(*arguments)
    assert words in str(refused.value)


def test_the_page_costs_the_same_however_much_there_is(
    release, operator, django_assert_max_num_queries
):
    for number in range(60):
        post(f"new-{number}", "wave")
    task = new_task(reply_to="shop")
    StatusMessage.objects.filter(task=task).update(reason="no", refused_at=DatabaseNow())
    take()
    with django_assert_max_num_queries(18):
        assert "61 dead letters, the newest 50 shown" in words(operator.get(PAGE))
