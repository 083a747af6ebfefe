"""The runbook's page, and the alerts that link to it."""

import pytest

from orchestration.alerting import alerts, runbook
from orchestration.models.alert import Severity
from tests.support.page import page

pytestmark = pytest.mark.django_db


def test_page_has_every_anchor(client):
    shown = page(client.get("/ops/runbook/"))
    assert {anchor["id"] for anchor in shown.all("a[id]")} >= runbook.ANCHORS
    assert shown.all("table")


def test_links_of_the_page_lead_to_pages(client):
    shown = page(client.get("/ops/runbook/"))
    addresses = [link["href"] for link in shown.all("a[href]")]
    assert [href for href in addresses if not href.startswith(("/", "#", "http"))] == []
    assert "docs/run/operate.md" in shown.text


def test_page_is_404_without_its_file(client, monkeypatch):
    monkeypatch.setattr(runbook, "PAGE", "docs/run/none.md")
    assert client.get("/ops/runbook/").status_code == 404


def test_alert_on_the_overview_links_to_its_section(client):
    alerts.raise_alert("gate/payment", severity=Severity.WARNING, title="payment: open")
    (link,) = page(client.get("/ops/")).all("[data-runbook]")
    assert link["href"] == "/ops/runbook/#circuit-open"
