"""Orders of applications pass the audit, whatever their application has heard or not."""

from datetime import timedelta

import pytest
from django.db.models import F

from orchestration import audit, status, submission, vigil
from orchestration.models import Alert, Application, StatusMessage, SupervisorPolicy
from orchestration.transitions.claim import claim
from orchestration.transitions.record import record
from tests.applications import Caller, application
from tests.engine import reply_to
from tests.shop import AGENTS, finish_all, products

pytestmark = pytest.mark.django_db


def found():
    """Audit in the test's own transaction, without the partners' ledgers."""
    audit.fill(audit.prepare())
    return [one for one in audit.find() if one.invariant != 3]


@pytest.fixture
def till():
    products()
    made = Caller(application("till", wants_steps=True)[1])
    made.place()
    submission.take(10)
    return made


def take_all(name):
    status.acknowledge(name, [row.id for row in status.fetch(name, 100)])


def test_who_hears_of_each_step_leaves_no_gap_for_the_shop(till):
    while requests := [one for group in claim(AGENTS, "s").requests.values() for one in group]:
        record([reply_to(one, result={"id": "x_1", "tracking": "T"}) for one in requests])
        take_all("till")
        assert found() == []
        status.deliver("shop", 100)
        assert found() == []
    assert not StatusMessage.objects.exists()


def test_what_an_application_does_not_fetch_is_an_alert_and_no_violation(till):
    finish_all()
    status.deliver("shop", 100)
    StatusMessage.objects.update(created_at=F("created_at") - timedelta(hours=1))
    SupervisorPolicy.objects.update(status_undelivered=60)
    late = {one.invariant for one in found()}
    assert late == {12}
    vigil.look(vigil.Lasting())
    assert Alert.objects.filter(fingerprint="system/status_undelivered/till").exists()
    assert found() == []
    Application.objects.filter(name="till").update(active=False)
    assert found() == []
