"""Dead letters: shown on the page, retried and closed by button and by command."""

import json
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration import registry, submission
from orchestration.applications import status_messages, task_status
from orchestration.cluster.debounce import Pauses
from orchestration.console.queries.conflicts import DID
from orchestration.dead_letters import actions
from orchestration.dead_letters.actions import DeadLetterFilter
from orchestration.models import Alert, DeadLetter, Event, StatusMessage, Submission, Task
from orchestration.models.fields import DatabaseNow
from orchestration.models.history import EventKind
from orchestration.workflows.workflow import Refused
from tests.support.engine import new_task, run_to_end
from tests.support.operators import browser, person
from tests.support.page import conflict_of, page

pytestmark = pytest.mark.django_db
PAGE = "/ops/dead-letters/"


@pytest.fixture
def release(monkeypatch):
    """What `greet` refuses, and whether its release is bad."""
    state = {"refuses": set(), "bad": False}

    def record(batch):
        if state["bad"]:
            raise TypeError("record() takes 1 positional argument")
        for request in batch:
            if request.reference in state["refuses"]:
                raise Refused("unknown guest")

    greet = registry.workflows["greet"]
    monkeypatch.setitem(registry.workflows, "greet", replace(greet, record=record))
    monkeypatch.setattr(submission, "_paused", Pauses())
    return state


@pytest.fixture
def operator():
    return browser(person("ann", "operate", "requeue", "see_personal"))


def post(reference, workflow="greet"):
    return Submission.objects.create(workflow=workflow, reference=reference, data={"name": "Ada"})


def make_due():
    """Make every retry due."""
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
    """Post three submissions: one refused, one of a bad release, one of an unknown workflow."""
    release["refuses"].add("refused")
    refused, unknown = post("refused"), post("unknown", "wave")
    take()
    release["bad"] = True
    failing = post("failing")
    for _ in range(2):
        make_due()
        take()
    return refused, failing, unknown


def letters(client, query="") -> dict[str, list[str]]:
    """Return the cells of each dead letter that the page lists, by its row's id."""
    rows = page(client.get(PAGE + query)).all("tr[id]")
    return {row["id"]: [cell.text for cell in row.cells()] for row in rows}


def total(client, query="") -> str:
    return page(client.get(PAGE + query)).only(".ops-total").only("strong").text


def test_three_kinds_are_listed_and_distinguished(release, operator):
    refused, failing, unknown = three_ends(release)
    shown = letters(operator)
    assert total(operator) == "3"
    assert len(shown) == 3
    for letter, badge, reason in [
        (refused, "refused", "unknown guest"),
        (failing, "waits", "TypeError: record() takes 1 positional argument"),
        (unknown, "unknown workflow", "there is no workflow"),
    ]:
        row = shown[f"letter-submission-{letter.id}"]
        assert row[0] == badge
        assert row[1].startswith(f"{letter.reference} ")
        assert row[1].endswith(letter.workflow)
        assert reason in row[2]
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
    home = page(operator.get("/ops/"))
    assert home.section("h-leader").only(f'[href="{PAGE}"]').numbers() == [3]
    links = home.section("h-alerts").all(f'[href="{PAGE}?kind=submission&name=greet"]')
    assert len(links) == 2


@pytest.mark.parametrize("by", ["button", "command"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_letter_is_retried_after_its_cause_is_removed(release, operator, monkeypatch, which, by):
    letter = three_ends(release)[which]
    release.update(refuses=set(), bad=False)
    monkeypatch.setitem(
        registry.workflows, "wave", replace(registry.workflows["greet"], name="wave")
    )
    before = open_alerts()
    if by == "button":
        answer = operator.post(
            f"{PAGE}retry/?kind=submission&id={letter.id}&back=kind%3Dsubmission"
        )
        assert (answer.status_code, answer["Location"]) == (303, f"{PAGE}?kind=submission")
        assert page(operator.get(PAGE)).only("#messages").only(".success").numbers() == [1]
    else:
        printed = command("retry", letter.id, "--kind", "submission", "--actor", "ann")
        assert printed == {"retried": 1}
    take()
    assert Task.objects.filter(reference=letter.reference).exists()
    assert len(open_alerts()) == len(before) - 1
    event = Event.objects.get(kind="retried")
    assert (event.actor, event.task) == ("ann", None)
    assert event.detail["target"] == f"{letter.workflow} {letter.reference}"


@pytest.mark.parametrize("by", ["button", "command"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_letter_is_closed_with_a_reason(release, operator, which, by):
    letter = three_ends(release)[which]
    before = open_alerts()
    address = f"{PAGE}close/?kind=submission&id={letter.id}"
    if by == "button":
        assert page(operator.post(address, {"reason": ""})).only(".wrong")
        answer = operator.post(address, {"reason": "they came in person"})
        assert answer.status_code == 303
    else:
        command("close", letter.id, "--kind", "submission", "--reason", "they came in person",
                "--actor", "ann")  # fmt: skip
    release.update(refuses=set(), bad=False)
    make_due()
    take()
    letter.refresh_from_db()
    assert letter.closed_at is not None
    assert not Task.objects.filter(reference=letter.reference).exists()
    assert len(open_alerts()) <= len(before) - 1
    event = Event.objects.get(kind="closed")
    assert (event.actor, event.reason) == ("ann", "they came in person")
    assert (
        task_status.set_aside(letter.workflow, letter.reference)
        is task_status.SetAsideReason.CLOSED
    )
    assert letter.reference not in [row["subject"] for row in command("list")]
    ((badge, name, *_),) = letters(operator, "?state=closed").values()
    assert badge == "closed"
    assert name.startswith(f"{letter.reference} ")
    audited = page(operator.get("/ops/audit/")).rows()
    assert [line[-1] for line in audited] == ["they came in person"]
    # a second user closes it late
    late = operator.post(address, {"reason": "again"})
    actor, sentence = conflict_of(late)
    assert actor == "ann"
    assert DID[EventKind.CLOSED] in sentence
    # and then retries it
    form = page(operator.get(f"{PAGE}?state=closed")).only('form[action*="retry"]')
    assert operator.post(form["action"]).status_code == 303
    letter.refresh_from_db()
    assert (letter.closed_at, letter.refused_at, letter.tries, letter.reason) == (None, None, 0, "")


def test_filtered_letters_are_retried_together(release, operator):
    three_ends(release)
    for number in range(3):
        post(f"more-{number}", "wave")
    take()
    address = f"{PAGE}retry/?state=unknown&name=wave"
    assert page(operator.get(address)).only("h1").numbers() == [4]
    assert not Event.objects.filter(kind="retried").exists()  # a GET changes nothing
    operator.post(address, {"reason": "deployed"})
    assert Submission.objects.filter(tries=0, reason="", workflow="wave").count() == 4
    assert Event.objects.filter(kind="retried", reason="deployed").count() == 4
    assert letters(operator, "?name=wave") == {}
    assert operator.get(address).status_code == 409


def test_only_one_letter_of_a_reference_is_retried(release):
    release["refuses"].add("7")
    for _ in range(2):
        post("7")
        take()
    post("8")
    Submission.objects.filter(reference="8").update(refused_at=DatabaseNow(), reason="no")
    post("8")
    assert actions.retry(DeadLetterFilter(), by="ann") == 1  # of 7 one, of 8 none: another waits
    assert Submission.objects.filter(reference="7", refused_at=None).count() == 1
    with pytest.raises(CommandError, match="another one has its reference"):
        command(
            "retry", Submission.objects.get(reference="8", reason="no").id, "--kind", "submission"
        )


def test_status_message_is_retried_and_closed(operator, monkeypatch):
    received, refuses = [], {"lost"}

    def receive(messages):
        for message in messages:
            if message.reference in refuses:
                raise Refused("unknown parcel")
        received.extend((message.reference, message.number) for message in messages)

    monkeypatch.setitem(registry.receivers, "shop", receive)
    task = new_task("lost", reply_to="shop")
    status_messages.deliver("shop", 100)
    message = StatusMessage.objects.get()
    row = page(operator.get(PAGE)).only(f"#letter-status-{message.id}")
    assert row.only(".badge").text == "refused"
    assert row.only(f'[href="{reverse("ops:task", args=[task.id])}"]').text.startswith("lost, ")
    assert row.texts(".ops-detail")[0].endswith(" shop")
    operator.post(f"{PAGE}close/?kind=status&id={message.id}", {"reason": "it is moot"})
    assert open_alerts() == set()
    assert Event.objects.get(kind="closed").task == task
    refuses.clear()
    run_to_end(task)
    status_messages.deliver("shop", 100)
    assert received == [("lost", 2)]
    assert command("retry", message.id, "--kind", "status", "--state", "closed") == {"retried": 1}
    status_messages.deliver("shop", 100)
    assert received == [("lost", 2), ("lost", 1)]


def test_inbox_message_is_retried_and_closed(operator):
    letter = DeadLetter.objects.create(
        queue="scheduler", body='{"to": "Ada"}', reason="no", tries=9
    )
    row = letters(operator)[f"letter-inbox-{letter.id}"]
    assert row[0] == "refused"
    assert "Ada" in row[2]
    assert "Ada" not in browser(person("bob", "operate")).get(PAGE).text
    operator.post(f"{PAGE}retry/?kind=inbox&id={letter.id}")
    letter.refresh_from_db()
    assert (letter.tries, letter.retry_at is None) == (0, False)
    assert command("close", letter.id, "--kind", "inbox", "--reason", "a test") == {"closed": 1}
    assert not DeadLetter.objects.exists()
    assert Event.objects.get(kind="closed").detail["target"] == "message of scheduler"


def test_command_counts_letters_that_it_does_not_list(capsys):
    for number in range(60):
        Submission.objects.create(
            workflow="wave", reference=str(number), data={}, refused_at=DatabaseNow(), reason="no"
        )
    assert len(command("list")) == 50
    assert "the newest 50 of 60; see --limit" in capsys.readouterr().err
    assert len(command("list", "--limit", "100")) == 60
    assert capsys.readouterr().err == ""


def test_bulk_retry_works_in_parts_with_the_newest_of_a_reference(monkeypatch):
    monkeypatch.setattr(actions, "BATCH_SIZE", 3)
    for number in range(10):
        Submission.objects.create(
            workflow="wave", reference=str(number % 5), data={}, refused_at=DatabaseNow()
        )
    with CaptureQueriesContext(connection) as asked:
        assert actions.retry(DeadLetterFilter(), by="ann", reason="deployed") == 5
    newest = list(Submission.objects.order_by("-id")[:5])
    assert all(row.refused_at is None for row in newest)
    assert Event.objects.filter(kind="retried", actor="ann", reason="deployed").count() == 5
    updates = [query["sql"] for query in asked if "UPDATE orchestration_submission" in query["sql"]]
    assert len(updates) == 4  # each writes the events of its rows
    assert actions.close(DeadLetterFilter(), by="ann", reason="no") == 5
    assert Event.objects.filter(kind="closed").count() == 5


@pytest.mark.parametrize(
    "narrowed", ["id=", "id=12x", "id=" + "9" * 19, "kind=submission&id=x", "id={}"]
)
def test_address_without_ids_never_selects_all(release, operator, narrowed):
    release["refuses"] = {"1", "2"}
    post("1"), post("2")
    take()
    address = f"{PAGE}close/?{narrowed.format(Submission.objects.first().id)}"
    assert operator.post(address, {"reason": "it is void"}).status_code == 404
    assert not Submission.objects.filter(closed_at__isnull=False).exists()


def test_name_with_a_null_character_is_accepted(operator):
    for name in ("name", "kind", "state"):
        assert operator.get(f"{PAGE}?{name}=%00").status_code == 200
    assert operator.get(f"{PAGE}retry/?kind=%00&id=1").status_code == 409


@pytest.mark.parametrize("kind", [Refused, TypeError])
def test_error_text_may_hold_any_characters(release, monkeypatch, kind):
    def record(_batch):
        raise kind("a\0b")

    greet = registry.workflows["greet"]
    monkeypatch.setitem(registry.workflows, "greet", replace(greet, record=record))
    post("1")
    take()
    assert "ab" in Submission.objects.get().reason


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["retry"], "say which"),
        (["retry", "7"], "give its --kind"),
        (["retry", "--all", "--name", "greet"], "say which"),
        (["retry", "7", "--kind", "submission"], "submission 7 is not a dead letter"),
        (["retry", "--name", "gret"], "did you mean 'greet'?"),
        (["close", "--all"], "--reason"),
    ],
)
def test_invalid_command_is_refused(arguments, sentence):
    with pytest.raises(CommandError) as refused:
        command(*arguments)
    assert sentence in str(refused.value)


def test_queries_are_independent_of_the_number_of_letters(
    release, operator, django_assert_max_num_queries
):
    for number in range(60):
        post(f"new-{number}", "wave")
    task = new_task(reply_to="shop")
    StatusMessage.objects.filter(task=task).update(reason="no", refused_at=DatabaseNow())
    take()
    with django_assert_max_num_queries(21):
        response = operator.get(PAGE)
    assert page(response).only(".ops-total").numbers() == [61, 50]  # of all, the newest
