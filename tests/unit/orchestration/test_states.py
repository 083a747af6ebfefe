"""The legal-moves tables: complete, drawn, and the same in the database's triggers."""

from importlib import import_module
from pathlib import Path

import pytest

from orchestration.management.state_diagram import drawing
from orchestration.states import (
    FINAL_TASK_STATES,
    STEP_MOVES,
    TASK_MOVES,
    StepState,
    TaskState,
)
from tests.support.moves import illegal_moves

of_tasks = import_module("orchestration.migrations.0042_undone_in_part")
later = import_module("orchestration.migrations.0032_waits")


@pytest.mark.parametrize(("moves", "states"), [(TASK_MOVES, TaskState), (STEP_MOVES, StepState)])
def test_states_all_have_a_row_of_moves(moves, states):
    assert set(moves) == set(states)


@pytest.mark.parametrize(
    ("moves", "frozen"), [(TASK_MOVES, of_tasks.TASK_MOVES), (STEP_MOVES, later.STEP_MOVES)]
)
def test_database_allows_the_same_moves(moves, frozen):
    assert {str(state): [str(after) for after in moves[state]] for state in moves} == frozen


def test_states_are_all_reachable():
    for moves, first in ((TASK_MOVES, TaskState.PENDING), (STEP_MOVES, StepState.WAITING)):
        reached, todo = set(), [first]
        while todo:
            state = todo.pop()
            if state not in reached:
                reached.add(state)
                todo += moves[state]
        assert reached == set(moves)


def test_undone_task_can_only_be_undone_further():
    assert set(TASK_MOVES[TaskState.UNDONE]) == {TaskState.UNDOING}
    assert TaskState.UNDONE in FINAL_TASK_STATES


def test_all_other_moves_are_illegal():
    illegal = illegal_moves(STEP_MOVES)
    assert (StepState.PROCESSED, StepState.PENDING) in illegal
    assert (StepState.PENDING, StepState.PROCESSING) not in illegal
    legal = sum(len(after) for after in STEP_MOVES.values())
    assert len(illegal) == len(StepState) * (len(StepState) - 1) - legal


def test_state_diagram_of_the_docs_matches_the_tables():
    document = Path(__file__).parents[3] / "docs" / "understand" / "states.md"
    assert document.read_text() == drawing(), "run: python manage.py draw_states"
