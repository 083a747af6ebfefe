"""The comparison of two commits."""

import subprocess

import pytest

from bench import against
from sasweb.stack.folders import PROJECT

OLD = {"scheduler": 0.6, "postgres": 1.0, "client": 9.0, "sandbox": 9.0}
NEW = {"scheduler": 0.3, "postgres": 0.5, "client": 1.0, "sandbox": 8.0}


def test_ratio_is_of_the_engine_alone_and_of_pairs_of_the_same_minutes():
    slow = {kind: 3 * ms for kind, ms in NEW.items()}
    slow_too = {kind: 3 * ms for kind, ms in OLD.items()}
    assert against.ratio([NEW, NEW], [OLD, OLD]) == pytest.approx(0.5)
    assert against.ratio([NEW, slow, NEW], [OLD, slow_too, OLD]) == pytest.approx(0.5)


def test_table_has_both_commits():
    text = against.report({"here": [NEW], "there": [OLD]}, "v1")
    assert "| v1 | 0.60 | 1.00 | 9.00 | 9.00 | 1.60 |" in text
    assert "| here | 0.30 | 0.50 | 1.00 | 8.00 | 0.80 |" in text


def test_unknown_commit_is_an_error_and_nothing_is_checked_out():
    trees = subprocess.check_output(["git", "worktree", "list"], cwd=PROJECT)
    with pytest.raises(RuntimeError, match="no-such-commit"):
        against.check_out("no-such-commit")
    assert subprocess.check_output(["git", "worktree", "list"], cwd=PROJECT) == trees
