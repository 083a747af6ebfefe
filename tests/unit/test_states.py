"""The legal-moves tables: complete, drawn, and the same in the database's triggers."""

from importlib import import_module
from pathlib import Path

import pytest

from orchestration.diagram import drawing
from orchestration.states import (
    FINAL_TASK_STATES,
    STEP_MOVES,
    TASK_MOVES,
    StepState,
    TaskState,
    illegal_moves,
)

tasks = import_module("orchestration.migrations.0025_effects_that_show_late")
steps = import_module("orchestration.migrations.0045_a_slim_supervisor")


@pytest.mark.parametrize(("moves", "states"), [(TASK_MOVES, TaskState), (STEP_MOVES, StepState)])
def test_every_state_has_its_line(moves, states):
    assert set(moves) == set(states)


@pytest.mark.parametrize(
    ("moves", "frozen"), [(TASK_MOVES, tasks.TASK_MOVES), (STEP_MOVES, steps.STEP_MOVES)]
)
def test_the_database_allows_the_same_moves(moves, frozen):
    assert {str(state): [str(after) for after in moves[state]] for state in moves} == frozen


def test_every_state_can_be_reached():
    for moves, first in ((TASK_MOVES, TaskState.PENDING), (STEP_MOVES, StepState.WAITING)):
        reached, todo = set(), [first]
        while todo:
            state = todo.pop()
            if state not in reached:
                reached.add(state)
                todo += moves[state]
        assert reached == set(moves)


def test_an_undone_task_is_only_undone_further():
    assert set(TASK_MOVES[TaskState.UNDONE]) == {TaskState.UNDOING}
    assert TaskState.UNDONE in FINAL_TASK_STATES


def test_illegal_moves_are_all_the_others():
    illegal = illegal_moves(STEP_MOVES)
    assert (StepState.PROCESSED, StepState.PENDING) in illegal
    assert (StepState.PENDING, StepState.PROCESSING) not in illegal
    legal = sum(len(after) for after in STEP_MOVES.values())
    assert len(illegal) == len(StepState) * (len(StepState) - 1) - legal


def test_the_drawing_in_the_docs_is_of_these_tables():
    document = Path(__file__).parents[2] / "docs" / "states.md"
    assert document.read_text() == drawing(), "run: python manage.py draw_states"
