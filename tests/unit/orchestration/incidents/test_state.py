"""Where an incident stands, as a table."""

import pytest

from orchestration.incidents.state import QUIET, IncidentFacts, decide_state

LONG = {"silent": QUIET}
OVER = {"open_tasks": 0, "active_steps": False}
TABLE = [
    ("new", {}, "new"),
    ("new", {"acknowledged": True}, "known"),
    ("known", {"acknowledged": True}, "known"),
    ("new", {"open_tasks": 0, "active_steps": True}, "new"),
    # only attempts failed: over once it has been silent for long, and all are done
    ("new", {**OVER}, "new"),
    ("new", {**OVER, **LONG}, "resolved"),
    ("new", {"open_tasks": 0, "active_steps": True, **LONG}, "new"),
    # tasks were in error: over as soon as none is
    ("known", {**OVER, "had_open_tasks": True, "acknowledged": True}, "resolved"),
    ("known", {"open_tasks": 1, "had_open_tasks": True, "acknowledged": True, **LONG}, "known"),
    # after a resubmit it is under way, regardless of the state before
    ("new", {"retrying": True, "active_steps": True}, "retrying"),
    ("returned", {"retrying": True, "returned": True}, "retrying"),
    ("retrying", {"retrying": True, **OVER, "had_open_tasks": True}, "retrying"),
    ("retrying", {**OVER, "had_open_tasks": True}, "resolved"),
    ("retrying", {"returned": True}, "returned"),
    ("retrying", {"acknowledged": True}, "known"),
    ("retrying", {}, "new"),
    # over, until it strikes again
    ("resolved", {**OVER}, "resolved"),
    ("resolved", {**OVER, "failed": True, "returned": True}, "returned"),
    ("resolved", {"failed": True, "returned": True}, "returned"),
    ("returned", {**OVER, "returned": True}, "returned"),
    ("returned", {**OVER, "returned": True, **LONG}, "resolved"),
    # muted is muted
    ("muted", {"muted": True}, "muted"),
    ("muted", {"muted": True, "retrying": True}, "muted"),
    ("muted", {"muted": True, **OVER, "had_open_tasks": True}, "muted"),
    ("muted", {"muted": False}, "new"),
]


@pytest.mark.parametrize(("state", "known", "then"), TABLE)
def test_where_it_stands(state, known, then):
    facts = {"open_tasks": 3, "active_steps": False, "retrying": False, **known}
    assert decide_state(IncidentFacts(state=state, **facts)) == then
