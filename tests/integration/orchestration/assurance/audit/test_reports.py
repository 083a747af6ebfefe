"""The audit's checks of what services report by ids of their own."""

from uuid import uuid4

import pytest

from orchestration import api, task_requests
from orchestration.messaging.messages import Accepted
from orchestration.models import Step
from orchestration.transitions import replies
from tests.support.engine import claimed, new_task, reply_to
from tests.support.violations import plant, violations

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def accepted():
    """A step that its service accepted as pi_1."""
    new_task("7")
    (request,) = claimed()
    reply = reply_to(request, "later", result={}).altered(wait=Accepted(id="pi_1", look=None))
    replies.record([reply])


def report(**ends):
    api.complete(by=("greeter", "pi_1"), actor="bank", id=uuid4(), **ends)
    while task_requests.take(10).done:
        pass


@pytest.mark.parametrize("ends", [{"result": {"text": "x"}}, {"refused": "declined"}])
def test_report_that_is_applied_breaks_nothing(ends):
    report(**ends)
    assert Step.objects.get(name="hello").process_state != "awaiting"
    assert violations() == []


def test_report_that_missed_its_step_is_found():
    report(result={"text": "x"})
    plant(
        "UPDATE orchestration_taskrequest SET refusal = 'UNKNOWN_ID', workflow = '', reference = 'x'"
    )
    assert [(each.invariant, each.reference) for each in violations()] == [(12, "7")]


def test_report_that_is_applied_twice_is_found():
    report(result={"text": "x"})
    plant(
        "INSERT INTO orchestration_event (task_id, step_id, kind, actor, reason, detail, attempt, at)"
        " SELECT task_id, step_id, kind, actor, reason, detail, attempt, at FROM orchestration_event"
        " WHERE kind = 'reported'"
    )
    assert [(each.invariant, each.reference) for each in violations()] == [(12, "7")]
