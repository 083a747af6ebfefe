"""Each alert of Prometheus has a paragraph of the runbook, a severity, and cases of both outcomes."""

import re

import pytest

from sasweb.stack.folders import PROJECT
from tests.support import prometheus
from tests.support.markdown import ANCHOR

ALERTS = {alert["alert"]: alert for alert in prometheus.alerts()}
PARAGRAPHS = set(ANCHOR.findall((PROJECT / "docs/run/runbook.md").read_text()))
RECORDED = {rule["record"] for rule in prometheus.rules() if "record" in rule}


@pytest.mark.parametrize("name", ALERTS)
def test_alert_is_complete(name):
    alert = ALERTS[name]
    assert alert["labels"]["severity"] in {"critical", "warning"}
    assert alert["annotations"]["summary"].endswith(".")
    site, _, anchor = alert["annotations"]["runbook_url"].partition("/ops/runbook/#")
    assert site == "{{ $externalLabels.site }}"
    assert anchor in PARAGRAPHS


@pytest.mark.parametrize("name", ALERTS)
def test_alert_has_a_case_in_which_it_fires_and_one_in_which_not(name):
    assert {fires for alert, fires in prometheus.cases() if alert == name} == {True, False}


def test_names_of_alerts_are_unique_and_cases_name_no_other():
    assert len(ALERTS) == len(prometheus.alerts()) > 20
    assert {alert for alert, _ in prometheus.cases()} == set(ALERTS)


def test_recorded_series_that_are_read_are_recorded():
    read = {
        name
        for expression in prometheus.expressions()
        for name in re.findall(r"\bsas:[\w:]+", expression)
    }
    assert read == RECORDED
