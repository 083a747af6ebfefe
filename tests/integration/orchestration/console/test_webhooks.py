"""What the agents' page and the metrics show of webhooks."""

from collections import Counter
from datetime import timedelta
from uuid import uuid4

import pytest

from orchestration import api, registry
from orchestration.applications import hooks
from orchestration.cluster.debounce import Pauses
from orchestration.console.queries import agents
from orchestration.models import TaskRequest
from orchestration.models.fields import DatabaseNow
from tests.greeting.workflow import Greeter
from tests.support.operators import browser, person
from tests.support.page import page, query_count
from tests.support.plans import plan

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def receiving(monkeypatch):
    """The greeter takes webhooks."""

    class Receiving(Greeter):
        @classmethod
        def receive(cls, webhook):
            webhook.verify("whsec_dGVzdA==")
            return []

    Pauses.end_all()
    monkeypatch.setattr(hooks, "_uncounted", Counter())
    monkeypatch.setitem(registry.agents, "greeter", Receiving)


def report(count, agent="greeter"):
    for number in range(count):
        api.complete(by=(agent, f"pi_{number}"), result={"id": "x"}, actor="x", id=uuid4())


def facts(client):
    card = page(client.get("/ops/agents/")).only("#agent-greeter")
    return {name: [each.text for each in card.all(f'[data-fact="{name}"]')]
            for name in ("webhooks", "unknown", "refused")}  # fmt: skip


def test_agent_that_takes_webhooks_shows_the_last_and_how_many(client):
    viewer = browser(person("eva", "operate"))
    assert facts(viewer) == {"webhooks": ["none in the last day"], "unknown": [], "refused": []}
    report(3)
    TaskRequest.objects.filter(external_id="pi_0").update(refusal="UNKNOWN_ID")
    for _ in range(2):
        client.post("/hooks/greeter/", b"{}", content_type="application/json")
    shown = facts(viewer)
    assert shown["webhooks"][0].startswith("3 reports, the last ")
    assert (shown["unknown"], shown["refused"]) == (["1"], ["1"])
    TaskRequest.objects.update(created_at=DatabaseNow() - timedelta(days=2))
    assert facts(viewer)["webhooks"] == ["none in the last day"]


def test_page_costs_the_same_with_many_reports():
    viewer = browser(person("eva", "operate"))
    few = query_count(viewer, "/ops/agents/")
    report(30)
    assert query_count(viewer, "/ops/agents/") == few


def test_webhooks_are_looked_for_along_their_index():
    values = {"agents": ["greeter"], "now": "2026-01-01", "limit": 10}
    assert ("Index Scan", "request_reported") in plan(agents.WEBHOOKS, values)


def test_metrics_have_them(client):
    report(2)
    client.post("/hooks/greeter/", b"{}", content_type="application/json")
    viewer = browser(person("eva", "operate"))
    text = viewer.get("/metrics").content.decode()
    assert 'sas_webhook_reports{agent="greeter",what="received"} 2.0' in text
    assert 'sas_webhooks_refused{agent="greeter"} 1.0' in text
