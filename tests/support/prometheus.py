"""The rules and dashboards of `deploy`, as data."""

import json
import re

import yaml

from sasweb.stack.folders import PROJECT

RULES = sorted((PROJECT / "deploy/prometheus").glob("*.rules.yaml"))
TESTS = sorted((PROJECT / "deploy/prometheus/tests").glob("*.yaml"))
DASHBOARDS = sorted((PROJECT / "deploy/grafana").glob("*.json"))
SELECTOR = re.compile(r"\b(sas_\w+)(?:\{([^}]*)\})?")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")


def rules():
    return [
        rule
        for path in RULES
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    ]


def alerts():
    return [rule for rule in rules() if "alert" in rule]


def anchors():
    """Return the runbook's anchors that alerts link to, by the alert's name."""
    return {
        alert["alert"]: alert["annotations"]["runbook_url"].partition("#")[2] for alert in alerts()
    }


def cases():
    """Yield the name of an alert and whether it fires, for each case of `promtool test rules`."""
    for path in TESTS:
        for group in yaml.safe_load(path.read_text())["tests"]:
            for case in group["alert_rule_test"]:
                yield case["alertname"], bool(case["exp_alerts"])


def dashboards():
    return {path.name: json.loads(path.read_text()) for path in DASHBOARDS}


def panels(dashboard):
    """Yield each panel, those in rows too."""
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def queries(dashboard):
    return [target["expr"] for panel in panels(dashboard) for target in panel.get("targets", [])]


def expressions():
    """Return every expression of rules and dashboards."""
    in_rules = [rule["expr"] for rule in rules()]
    return in_rules + [expr for dashboard in dashboards().values() for expr in queries(dashboard)]


def used():
    """Return the metrics that expressions name, each with the labels of its selectors."""
    labels = {}
    for expression in expressions():
        for name, selector in SELECTOR.findall(expression):
            labels.setdefault(name, set()).update(LABEL.findall(selector))
    return labels
