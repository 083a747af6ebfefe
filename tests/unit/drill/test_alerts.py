"""The drill of the alerts has a scene for each alert, and shortens its times only."""

import yaml

from drill.alerts.scenes import SCENES
from drill.alerts.watch import RULES, shortened
from tests.support import prometheus


def test_each_alert_has_one_scene():
    provoked = sorted(alert for _, _, alerts in SCENES for alert in alerts)
    assert provoked == sorted(alert["alert"] for alert in prometheus.alerts())


def test_shortened_rules_differ_in_times_only():
    text = "a > 300 for: 2m\nratio_rate1h rate(x[5m]) avg_over_time(y[3d]) interval: 30s"
    assert shortened(text) == (
        "a > 300 for: 6s\nratio_rate1h rate(x[15s]) avg_over_time(y[12960s]) interval: 1s"
    )
    for path in RULES.glob("*.rules.yaml"):
        full, short = (
            [rule for group in yaml.safe_load(rules)["groups"] for rule in group["rules"]]
            for rules in (path.read_text(), shortened(path.read_text()))
        )
        assert [rule.get("alert", rule.get("record")) for rule in full] == [
            rule.get("alert", rule.get("record")) for rule in short
        ]
