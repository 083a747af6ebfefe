"""Each alert that the source can raise has a paragraph in the runbook, and each paragraph an alert."""

import ast
import importlib
import re

import pytest
from django.test import override_settings
from django.urls import resolve

from orchestration.alerting import alerts, runbook
from orchestration.console import alert_links
from sasweb.stack.folders import PROJECT
from tests.support import prometheus
from tests.support.markdown import ANCHOR


def text_of(node, names):
    """Return the text that an expression gives, with "x" for what only a run knows."""
    match node:
        case ast.Constant():
            return str(node.value)
        case ast.JoinedStr():
            return "".join(text_of(part, names) for part in node.values)
        case ast.FormattedValue():
            return text_of(node.value, names)
        case ast.BinOp():
            return text_of(node.left, names) + text_of(node.right, names)
        case ast.IfExp():
            return text_of(node.body, names)
    parts = ast.unparse(node).split(".")
    value = names.get(parts[0])
    for part in parts[1:]:
        value = getattr(value, part, None)
    return value if isinstance(value, str) else "x"


def calls(path):
    """Return the calls of a module that make alerts: a call, and what its name ends in."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield node, ast.unparse(node.func).split(".")[-1]


def fingerprint_of(call, called, names):
    """Return the fingerprint that a call gives an alert; None if it makes none."""
    values = [keyword.value for keyword in call.keywords if keyword.arg == "fingerprint"]
    if called == "raise_alert":
        values += call.args[:1]
    elif called != "AlertReport":
        return None
    return text_of(values[0], names) if values else None


def raised():
    """Return the fingerprints that the engine and the shop can raise, with their places."""
    paths = [path for app in ("orchestration", "orders") for path in (PROJECT / app).rglob("*.py")]
    for path in paths:
        if not re.search("raise_alert|AlertReport", path.read_text()):
            continue
        module = ".".join(path.relative_to(PROJECT).with_suffix("").parts)
        names = vars(importlib.import_module(module.removesuffix(".__init__")))
        for call, called in calls(path):
            text = fingerprint_of(call, called, names)
            if text and not text.startswith("x"):  # else its caller, or the list below, has it
                yield f"{path.relative_to(PROJECT)}:{call.lineno}", text


RAISED = dict(raised()) | {  # made by functions, or of a cause that only a run knows
    f"by {fingerprint}": fingerprint
    for fingerprint in (
        "step/w/s/timeout/1", "undo/w/s/http_500/1",
        "late_effect/01990000-0000-7000-8000-000000000000/pay/undo",
        "operation/7", "audit/3", "system/clock/host", *(
            f"{lane}/w{problem}"
            for lane in alerts.LANES for problem in ("", "/failing", "/unknown", "/stuck")
        ),
    )
}  # fmt: skip


def test_the_source_is_searched():
    assert len(RAISED) > 25


@pytest.mark.parametrize("place", RAISED)
def test_alert_has_a_paragraph(place):
    assert runbook.anchor(RAISED[place]), RAISED[place]


@pytest.mark.parametrize("place", RAISED)
def test_alert_leads_to_a_page(place):
    address = alert_links.alert_address(RAISED[place], alert=7)
    assert resolve(address.partition("?")[0].partition("#")[0]).app_name == "ops"
    by_alert = address == "/ops/tasks/?q=alert:7"
    assert by_alert == RAISED[place].startswith(("step/", "undo/"))


def test_each_paragraph_belongs_to_an_alert():
    anchors = ANCHOR.findall((PROJECT / runbook.PAGE).read_text())
    assert len(anchors) == len(set(anchors))
    assert set(anchors) == runbook.ANCHORS | set(prometheus.anchors().values())


def test_runbook_rules_are_all_reached():
    examples = {
        rule: re.sub(r"\(([^|)]+)[^)]*\)", r"\1", rule.replace(runbook.NAME, "x")).rstrip("$")
        for rule in runbook.RULES
    }
    assert {rule: runbook.anchor(text) for rule, text in examples.items()} == runbook.RULES


@override_settings(RUNBOOK_URL="", SITE_URL="https://shop.example")
def test_runbook_address_is_the_dashboards_unless_set():
    assert runbook.url("overdue/w") == "https://shop.example/ops/runbook/#overdue"
    assert runbook.url("overdue/w", "/ops/runbook/") == "/ops/runbook/#overdue"
    with override_settings(RUNBOOK_URL="https://wiki.example/runbook"):
        assert runbook.url("overdue/w", "/ops/runbook/") == "https://wiki.example/runbook#overdue"
