"""`manage.py operations`: a dry run, an act, its result, and the exit codes."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from orchestration.models import Operation, OperationItem
from tests.support.engine import irreversible, new_task, reply_to
from tests.support.operations import advance, answer, begin, failed

pytestmark = pytest.mark.django_db


def operations(*arguments):
    out = StringIO()
    call_command("operations", *arguments, "--json", stdout=out, stderr=StringIO())
    return [json.loads(line) for line in out.getvalue().splitlines()]


def start(*arguments):
    return operations("start", *arguments, "--actor", "ann")


def test_a_dry_run_writes_nothing():
    failed(2)
    (shown,) = operations("start", "resubmit", "--query", "error:no_route", "--dry-run")
    assert (shown["eligible"], shown["calls"]) == (
        2, [{"agent": "greeter", "action": "greet", "count": 2}],
    )  # fmt: skip
    assert not Operation.objects.exists()


def test_from_the_start_to_the_true_end():
    failed(2)
    (shown,) = start("resubmit", "--query", "state:error", "--reason", "mended", "--rate", "1000")
    assert (shown["state"], shown["waiting"]) == ("waiting", 2)
    operation = Operation.objects.get()
    begin(operation)
    advance(operation)
    advance(operation)
    requests = []
    answer(
        lambda sent: (
            requests.append(sent) or reply_to(sent, "rejected" if len(requests) == 1 else "done")
        )
    )
    advance(operation)
    with pytest.raises(SystemExit) as ended:
        operations("show", str(operation.id))
    assert ended.value.code == 1
    (shown,) = operations("list")
    assert shown["summary"] == "2 resubmitted: 1 fixed, 1 failed (other cause)"
    assert operations("list", "--open") == []


def test_an_undo_can_be_forced_and_nothing_else():
    task = irreversible(new_task())
    which = ("--task", str(task.id))
    (shown,) = operations("start", "undo", *which, "--dry-run")
    assert (shown["eligible"], shown["standing"][0]["step"]) == (0, "again")
    (shown,) = operations("start", "undo", *which, "--force", "--dry-run")
    assert (shown["eligible"], shown["forced"]) == (1, 1)
    with pytest.raises(CommandError, match="say why"):
        start("undo", *which, "--force")
    start("undo", *which, "--force", "--reason", "recalled")
    assert Operation.objects.get().forced
    with pytest.raises(CommandError, match="only an undo") as misuse:
        start("hold", *which, "--force", "--reason", "recalled")
    assert misuse.value.returncode == 2


def test_in_words():
    out = StringIO()
    failed(1)
    call_command(*("operations", "start", "resubmit", "--query", "", "--reason", "x"), stdout=out)
    assert "summary: 1 waiting" in out.getvalue()


def test_a_task_and_a_sample():
    a, b = failed(2)
    start("resubmit", "--task", str(a.id), "--task", str(b.id), "--sample", "1", "--reason", "x")
    assert OperationItem.objects.get().task == a


def test_pause_resume_abort():
    failed(2)
    (shown,) = start("resubmit", "--query", "", "--reason", "x")
    number = str(shown["operation"])
    with pytest.raises(CommandError, match="ann confirmed it"):
        operations("pause", number)
    Operation.objects.update(state="running")
    assert operations("pause", number)[0]["state"] == "paused"
    assert operations("resume", number)[0]["state"] == "running"
    assert operations("abort", number, "--reason", "enough")[0]["state"] == "aborted"


@pytest.mark.parametrize(
    "arguments",
    [
        ("resubmit", "--query", "nonsense:1", "--reason", "x"),
        ("resubmit", "--query", ""),
        ("resubmit", "--query", "", "--reason", "x", "--rate", "0"),
        ("by_hand", "--query", "", "--reason", "x"),
        ("resubmit", "--task", "nonsense", "--reason", "x"),
    ],
)
def test_misuse(arguments):
    failed(1)
    with pytest.raises(CommandError) as refused:
        start(*arguments)
    assert refused.value.returncode == 2
    assert not Operation.objects.exists()


def test_nothing_to_do():
    with pytest.raises(CommandError, match="there is no incident 9"):
        start("resubmit", "--incident", "9", "--reason", "x")
    with pytest.raises(CommandError, match="no item"):
        start("resubmit", "--query", "", "--reason", "x")
    assert not Operation.objects.exists()
    with pytest.raises(CommandError, match="unknown operation 9"):
        operations("show", "9")
