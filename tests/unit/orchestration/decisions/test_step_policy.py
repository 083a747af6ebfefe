"""A step's own thresholds in the places of its agent's."""

from dataclasses import fields

import pytest

from orchestration.decisions.recovery import Thresholds
from orchestration.decisions.step_policy import OF_STEPS, undo_is_too_short, with_own

AGENTS = Thresholds(failure_threshold=5, backoff=1, backoff_cap=60, undo_threshold=20)


def test_own_values_replace_the_agents_and_nothing_else():
    merged = with_own(AGENTS, {"failure_threshold": 9, "on_rejection": "undo"})
    changed = {
        field.name: getattr(merged, field.name)
        for field in fields(Thresholds)
        if getattr(merged, field.name) != getattr(AGENTS, field.name)
    }
    assert changed == {"failure_threshold": 9, "on_rejection": "undo"}
    assert with_own(AGENTS, {}) == AGENTS


@pytest.mark.parametrize(
    ("own", "undo", "sentence"),
    [
        ({"failure_threshold": 20}, 20, ""),
        ({"failure_threshold": 21}, 21, "failure threshold 21, undo threshold 20"),
        ({"undo_threshold": 4}, 5, "failure threshold 5, undo threshold 4"),
        ({"failure_threshold": 3, "undo_threshold": 3}, 3, ""),
    ],
)
def test_undo_is_tried_at_least_as_often_as_what_it_undoes(own, undo, sentence):
    assert with_own(AGENTS, own).undo_threshold == undo
    assert undo_is_too_short(AGENTS, own) == sentence


def test_each_threshold_of_a_step_is_among_those_that_decide():
    assert set(OF_STEPS) < {field.name for field in fields(Thresholds)}
