"""The audit of applications' orders, with status messages fetched and unfetched."""

from datetime import timedelta

import pytest
from django.db.models import F

from orchestration import submission
from orchestration.applications import status_messages
from orchestration.assurance.audit import runner, snapshot
from orchestration.models import Alert, Application, StatusMessage, SupervisorPolicy
from orchestration.monitoring import monitors
from tests.support.applications import Caller, application
from tests.support.shop import ask, finish_all, products, reply

pytestmark = pytest.mark.django_db


def violations():
    """Audit in the test's own transaction, without the partners' ledgers."""
    snapshot.fill(snapshot.prepare())
    return [violation for violation in runner.find() if violation.invariant != 3]


@pytest.fixture
def till():
    products()
    Caller(application("till", notify_steps=True)[1]).place()
    submission.take(10)


def test_audit_with_an_application_notified_of_each_step(till):
    while requests := ask():
        reply(requests)
        status_messages.acknowledge("till", [row.id for row in status_messages.fetch("till", 100)])
        assert violations() == []
        status_messages.deliver("shop", 100)
        assert violations() == []
    assert not StatusMessage.objects.exists()


def test_audit_with_messages_not_fetched_in_time(till):
    finish_all()
    status_messages.deliver("shop", 100)
    StatusMessage.objects.update(created_at=F("created_at") - timedelta(hours=1))
    SupervisorPolicy.objects.update(status_undelivered=60)
    late = {violation.invariant for violation in violations()}
    assert late == {12}
    monitors.look(monitors.Debounce())
    assert Alert.objects.filter(fingerprint="system/status_undelivered/till").exists()
    assert violations() == []
    Application.objects.filter(name="till").update(active=False)
    assert violations() == []
