"""Descriptions of faults and of partners' states."""

from typing import Any

import pytest

from sandbox.faults import KINDS, parse_fault
from sandbox.site import faults


@pytest.mark.parametrize("kind", KINDS)
def test_fault_description_exists_for_every_kind(kind: str) -> None:
    fault = parse_fault({"fault": kind}, "fault", 1)
    assert faults.describe_effect(fault)
    assert "{" not in faults.describe_effect(fault)
    assert faults.partner_state("mail", [fault]).word == faults.DESCRIPTIONS[kind][0]


@pytest.mark.parametrize(
    ("fault", "words", "state"),
    [
        ({}, "", "Down"),
        ({"action": "send"}, "only send", "Down at times"),
        (
            {"key": "k-*", "order": "o-1"},
            "only keys like k-*, only orders like o-1",
            "Down at times",
        ),
        ({"probability": 0.25}, "25% of requests", "Down at times"),
        ({"skip": 1, "times": 2}, "after 1 more request, 2 left", "Down"),
    ],
)
def test_scope_description_names_each_filter(fault: dict[str, Any], words: str, state: str) -> None:
    parsed = parse_fault({"fault": "down", "partner": "mail", **fault}, "fault", 1)
    assert faults.describe_scope(parsed) == words
    assert faults.partner_state("mail", [parsed]).word == state
    assert faults.partner_state("payment", [parsed]) == faults.WORKS


def test_partner_state_prefers_a_fault_for_all_requests() -> None:
    of_an_order = parse_fault({"partner": "mail", "fault": "status", "order": "o-1"}, "fault", 1)
    everyone = parse_fault({"partner": "mail", "fault": "down"}, "fault", 2)
    assert faults.partner_state("mail", [of_an_order, everyone]).word == "Down"
