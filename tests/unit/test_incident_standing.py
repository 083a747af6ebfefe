"""Where an incident stands, as a table."""

import pytest

from orchestration.incidents.standing import QUIET, Facts, standing

LONG = {"silent": QUIET}
OVER = {"suffering": 0, "struggling": False}
TABLE = [
    ("new", {}, "new"),
    ("new", {"acknowledged": True}, "known"),
    ("known", {"acknowledged": True}, "known"),
    ("new", {"suffering": 0, "struggling": True}, "new"),
    # only attempts failed: over once it has been silent for long, and all are done
    ("new", {**OVER}, "new"),
    ("new", {**OVER, **LONG}, "resolved"),
    ("new", {"suffering": 0, "struggling": True, **LONG}, "new"),
    # tasks were in error: over as soon as none is
    ("known", {**OVER, "suffered": True, "acknowledged": True}, "resolved"),
    ("known", {"suffering": 1, "suffered": True, "acknowledged": True, **LONG}, "known"),
    # what was resubmitted is under way, whatever was before
    ("new", {"retrying": True, "struggling": True}, "retrying"),
    ("returned", {"retrying": True, "returned": True}, "retrying"),
    ("retrying", {"retrying": True, **OVER, "suffered": True}, "retrying"),
    ("retrying", {**OVER, "suffered": True}, "resolved"),
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
    ("muted", {"muted": True, **OVER, "suffered": True}, "muted"),
    ("muted", {"muted": False}, "new"),
]


@pytest.mark.parametrize(("state", "known", "then"), TABLE)
def test_where_it_stands(state, known, then):
    facts = {"suffering": 3, "struggling": False, "retrying": False, **known}
    assert standing(Facts(state=state, **facts)) == then
