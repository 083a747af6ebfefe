"""The paragraph of the runbook for each alert, by the alert's fingerprint.

The runbook is docs/run/runbook.md; the dashboard shows it. A test compares its anchors with `ANCHORS`,
and finds an anchor for each alert that the source can raise.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from django.apps import apps
from django.conf import settings

CONSOLE = "orchestration.console"  # whose page it is
PAGE = "docs/run/runbook.md"  # in the project of the engine, and in its package

# The first pattern that matches a fingerprint has its anchor. NAME is a workflow, step, agent, …
NAME = "[^/]+"
RULES: Mapping[str, str] = {
    rf"step/{NAME}/{NAME}/expired/": "step-expired",
    rf"step/{NAME}/{NAME}/key_forgotten/": "step-key-forgotten",
    rf"step/{NAME}/{NAME}/(request_not_built|invalid_time|not_loaded|load_failed)/": "step-request",
    rf"step/{NAME}/{NAME}/(agent_error|no_such_action|result_not_stored|compute_failed)/": "step-code",
    rf"step/{NAME}/{NAME}/loop_blocked/": "loop-blocked",
    r"step/": "step-failed",
    r"undo/": "undo-failed",
    rf"late_effect/{NAME}/(lost|stands)$": "lost-task",
    r"late_effect/": "late-effect",
    r"overdue/": "overdue",
    rf"submission/{NAME}$": "submission-refused",
    r"submission/": "submission-failing",
    rf"request/{NAME}$": "request-refused",
    r"request/": "request-failing",
    rf"status/{NAME}$": "status-set-aside",
    r"status/": "status-failing",
    r"dead_letter/": "dead-letter",
    r"blocked_loop/": "loop-blocked",
    rf"webhook/{NAME}/refused$": "webhook-refused",
    rf"webhook/{NAME}/failing$": "webhook-failing",
    r"gate/": "circuit-open",
    r"operation/": "second-person",
    r"audit/ledgers$": "audit-ledgers",
    r"audit/late/": "audit-late",
    r"audit/": "audit-violation",
    r"system/no_worker/": "no-worker",
    r"system/instance/": "worker-stepped-back",
    r"system/paused/": "agent-paused",
    r"system/undeclared/": "agent-undeclared",
    r"system/uncomputed/": "step-uncomputed",
    r"system/waiting/": "steps-waiting",
    r"system/undo_stuck/": "undo-stuck",
    r"system/status_undelivered/": "status-undelivered",
    r"system/schedule/": "schedule",
    r"system/clock_jumped$": "clock-jumped",
    r"system/clock/": "clock-wrong",
    r"system/blocked/": "foreign-lock",
    rf"system/{NAME}/no_leader$": "no-leader",
    rf"system/{NAME}/not_swept$": "no-sweep",
    rf"system/{NAME}/failing/": "duty-failing",
    rf"system/{NAME}/stuck$": "not-recoverable",
}
ANCHORS = frozenset(RULES.values())


def text() -> str:
    """Return the runbook; raise FileNotFoundError if the installation is without it."""
    package = Path(__file__).parents[1] / PAGE
    return (package if package.exists() else package.parents[3] / PAGE).read_text()


def anchor(fingerprint: str) -> str:
    """Return the anchor of the alert with this fingerprint; empty if no rule matches."""
    return next((name for rule, name in RULES.items() if re.match(rule, fingerprint)), "")


def url(fingerprint: str, page: str = "") -> str:
    """Return the address of an alert's paragraph.

    `page` is the console's page as the caller knows it; RUNBOOK_URL goes first. Both can be missing
    outside of a request: then the page stands below SITE_URL. Without a console it is the file.
    """
    below_site = f"{settings.SITE_URL}/ops/runbook/" if apps.is_installed(CONSOLE) else PAGE
    return f"{settings.RUNBOOK_URL or page or below_site}#{anchor(fingerprint)}"
