"""What the log says of steps that fail: which, why, and what follows; nothing that a partner wrote."""

import pytest
from django.db import transaction

from orchestration.transitions.replies import record
from tests.support.engine import (
    claimed,
    in_error,
    new_task,
    postpone_retries,
    reply_to,
    request_undo,
    staff,
    sweep,
)
from tests.support.operators import LEADER

pytestmark = pytest.mark.django_db(transaction=True)
LETTER = "no letter for ada@example.org"


@pytest.fixture(autouse=True)
def _staffed():
    staff()
    postpone_retries()


def lines(caplog):
    """Return the lines about a task: their text, and what they are about."""
    return [
        (record.levelname, record.getMessage(), record.reference, record.step, record.attempt)
        for record in caplog.records
        if hasattr(record, "reference")
    ]


def test_retry_says_why_and_when(caplog):
    task = new_task()
    record([reply_to(claimed()[0], "unknown", code="http_500", message=LETTER)])
    assert lines(caplog) == []
    sweep(LEADER)
    ((level, text, *about),) = lines(caplog)
    assert about == [task.reference, "hello", 1]
    assert level == "INFO"
    assert text.startswith("hello is retried: failure 1 (http_500): again in ")


def test_error_says_its_code_and_not_the_partners_words(caplog):
    step = in_error(code="no_letter", message=LETTER)
    about = (step.task.reference, "hello", 1)
    assert lines(caplog) == [("WARNING", "hello is in error: no_letter", *about)]


def test_undo_is_reported_without_its_reason(caplog):
    task = new_task()
    request_undo("greet", task.reference, actor="ada", reason=LETTER)
    (line,) = [record for record in caplog.records if hasattr(record, "reference")]
    assert (line.getMessage(), line.reference) == ("greet is undone", task.reference)


def test_change_that_is_rolled_back_is_not_reported(caplog):
    task = new_task()
    with transaction.atomic():
        in_error(task)
        transaction.set_rollback(True)
    assert lines(caplog) == []
