"""What rules and dashboards ask for is in what /metrics says."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from orchestration.models import AuditRun
from orchestration.models.fields import DatabaseNow
from tests.support import prometheus
from tests.support.applications import application
from tests.support.operators import staffed

pytestmark = pytest.mark.django_db


@pytest.fixture
def emitted(client):
    """Return the labels of each metric that an installation at work shows."""
    staffed()
    AuditRun.objects.create(by="hourly", tasks=7, ended_at=DatabaseNow(), violations=[])
    _, token = application("prometheus", "metrics:read")
    client.get("/")  # a request to be counted
    response = client.get("/metrics", headers={"Authorization": f"Bearer {token}"})
    labels = {}
    for family in text_string_to_metric_families(response.content.decode()):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


def test_metrics_and_labels_of_rules_and_dashboards_exist(emitted):
    used = prometheus.used()
    assert len(used) > 20
    assert used.keys() - emitted.keys() == set()
    missing = {name: labels - emitted[name] for name, labels in used.items()}
    assert {name: labels for name, labels in missing.items() if labels} == {}
