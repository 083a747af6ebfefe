"""Each write of a task or step names what it was decided on, and only the transitions write them."""

from importlib import import_module
from pathlib import Path

import pytest

from tests.house.writes import unguarded, writes

ROOT = Path(__file__).parents[2]
PRODUCT = sorted(
    path
    for package in ("orchestration", "orders", "sandbox", "sasweb")
    for path in (ROOT / package).rglob("*.py")
    if "migrations" not in path.parts
)
TRANSITIONS = ROOT / "orchestration" / "transitions"
# Why a write of another module, or one that names something else, cannot overwrite what it has not seen.
EXCEPTIONS = {
    "orchestration/applications/outbox.py": "a message takes the next number of its locked task: no state",
    "orchestration/applications/owner_updates.py": "the same, for the task's owner",
    "orchestration/transitions/clock_jump.py": "a time moves if it still is what it was: no state",
}


def names(path):
    """Return the names of a module that may write; others need not be loaded."""
    if "orchestration_" not in path.read_text():
        return {}
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    return vars(import_module(module))


def test_each_write_names_the_state_and_for_a_step_its_attempt_and_generation():
    broken = {
        str(path.relative_to(ROOT)): lines
        for path in PRODUCT
        if (lines := unguarded(path.read_text(), names(path)))
    }
    assert broken.keys() - EXCEPTIONS.keys() == set(), broken
    assert EXCEPTIONS.keys() - broken.keys() == set(), "an exception that is not needed"


def test_only_transitions_write_tasks_and_steps():
    writers = {
        str(path.relative_to(ROOT))
        for path in PRODUCT
        if TRANSITIONS not in path.parents and writes(path.read_text(), names(path))
    }
    assert writers <= EXCEPTIONS.keys()


# All moves of steps are written by `step_update`. These decide in SQL, over rows that they lock there.
SETS = {
    "amendments.py", "clock_jump.py", "holds.py", "loading.py", "lost_attempts.py", "overdue.py",
    "priority.py", "unmended.py",
}  # fmt: skip


def test_steps_are_moved_by_one_writer():
    seen = {
        path.name
        for path in PRODUCT
        if TRANSITIONS in path.parents and writes(path.read_text(), names(path))
    }
    assert seen == SETS | {"claim.py", "joins.py", "settle.py", "step_update.py"}  # three of tasks


WHOLE = "(s.process_state, s.attempt, s.generation) = (r.state, r.attempt, r.generation)"


@pytest.mark.parametrize(
    "source",
    [
        'A = "UPDATE orchestration_step SET turn = 1"',
        'A = "UPDATE orchestration_step SET turn = 1 WHERE id = ANY(%(ids)s)"',
        "A = \"update orchestration_step s set turn = 1 where s.id = 3 and s.process_state = 'error'\"",
        "A = 'UPDATE \"orchestration_task\" SET priority = 3 WHERE id = 5'",
        "A = \"UPDATE orchestration_task t SET data = s.data FROM s WHERE s.process_state = 'x'\"",
        'A = "DELETE FROM orchestration_step WHERE id = 5"',
        # what is named outside its own WHERE does not count
        f'A = "UPDATE orchestration_step s SET turn = 1 WHERE id = 1 RETURNING {WHOLE}"',
        f'A = "WITH b AS (UPDATE orchestration_step s SET turn = 1 WHERE id = 1) SELECT 1 WHERE {WHOLE}"',
        f'A = "UPDATE orchestration_step s SET turn = (SELECT 1 WHERE {WHOLE}) WHERE s.id = 2"',
        'A = f"UPDATE orchestration_step s SET turn = 1 {WHERE}"',
        'def a(rows):\n    run(f"UPDATE orchestration_step s SET turn = 1 WHERE id = ANY({rows})")',
        'A = "UPDATE orchestration_{kind} t SET run_after = NULL WHERE id = 1"',
        "Step.objects.filter(id=3).update(turn=1)",
        "Step.objects.filter(id=3, process_state='error', attempt=2).update(turn=1)",
        "Step.objects.filter(**version(step, 'error')).update(turn=1)",
        "Task.objects.filter(id=3).update(data={})",
        "Task.objects.filter(id=3).select_for_update().update(data={})",
        "Step.objects.bulk_update(steps, ['turn'])",
        "Step.objects.filter(task=3).delete()",
        "def a():\n    rows = Step.objects.filter(id=3)\n    rows.exclude(turn=1).update(turn=1)",
        "def a():\n    step = Step.objects.get(id=3)\n    step.turn = 1\n    step.save()",
        "def a(*, task: Task):\n    task.save(update_fields=['data'])",
    ],
)
def test_write_that_names_too_little_is_found(source):
    assert len(unguarded(source, {"WHERE": "WHERE s.id = 3"})) == 1


@pytest.mark.parametrize(
    "source",
    [
        f'A = "UPDATE orchestration_step s SET turn = 1 FROM r WHERE s.id = r.id AND {WHOLE} RETURNING 1"',
        f'A = "WITH b AS (UPDATE orchestration_step s SET turn = 1 WHERE s.id = 1 AND {WHOLE}) SELECT 1"',
        'A = f"UPDATE orchestration_step s SET turn = 1 {WHERE}"',
        "A = \"UPDATE orchestration_task SET state = 'processing' WHERE id = 1 AND state = 'pending'\"",
        'A = "UPDATE orchestration_operation SET state = 1"',
        'A = "SELECT 1 FROM orchestration_step WHERE id = 1 FOR NO KEY UPDATE"',
        "Step.objects.filter(id=1, process_state='error', attempt=1, generation=1).update(turn=1)",
        "Task.objects.filter(id=1, state__in=LIVE).update(overdue=True)",
        "Event.objects.filter(task=1).delete()",
        "def a():\n    s = Step.objects.filter(process_state='x', attempt=1, generation=1)\n    s.delete()",
        "def a(step: Step):\n    values.update(step=step)",
    ],
)
def test_write_that_names_enough_is_not(source):
    assert unguarded(source, {"WHERE": f"WHERE s.id = r.id AND {WHOLE}"}) == []
