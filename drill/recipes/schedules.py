"""Schedules whose due times pass while housekeepers die, or while the clock jumps."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from uuid import uuid4

from drill.recipes import Running, recipe
from drill.recipes.crashes import doomed, wait_for_crash
from drill.waiting import wait_for

PASSED = 60  # due times that have passed without a housekeeper: a look submits ten of them
MINUTE = timedelta(minutes=1)
# Nothing is due, and nothing waits that was.
PAST_ALL = """
SELECT count(*) FROM orchestration_schedule s
WHERE s.name = %s AND s.due_at > clock_timestamp() AND s.waiting_due IS NULL
    AND NOT EXISTS (SELECT FROM orchestration_submission m WHERE starts_with(m.reference, %s))
"""
RUNS = """
SELECT reference, split_part(reference, '/', 2)::timestamptz FROM orchestration_task
WHERE workflow = 'drill_report' AND starts_with(reference, %s) ORDER BY 2
"""
FORGET = "DELETE FROM orchestration_schedule WHERE name = %s RETURNING last_due"


@contextmanager
def scheduled(run: Running, passed: int = 0, *, least: int) -> Iterator[Callable[[], bool]]:
    """Have a schedule run each minute, with due times in the past; its runs belong to the mode.

    Yields a function that returns whether all due times are submitted. At the end each has to be one task,
    and there are at `least` that many.
    """
    name = f"every-{uuid4().hex[:8]}"
    run.stack.python("drill.operator", "catch_up", name, str(passed))
    yield lambda: run.stack.count(PAST_ALL, name, f"{name}/") == 1
    ((last,),) = run.stack.sql(FORGET, name)
    runs = run.stack.sql(RUNS, f"{name}/")
    run.orders += [reference for reference, _ in runs]
    due = [time for _, time in runs]
    assert len(due) >= least, f"only {len(due)} due times are submitted"
    assert due == [due[0] + number * MINUTE for number in range(len(due))], f"not each once: {due}"
    assert last in due, f"the last due time, {last}, has no task"


@recipe
def crash_catch_up(run: Running, *, point: str, times: int = 3) -> Iterator[None]:
    """Kill a housekeeper while it catches up a schedule, several times: each due time is one task."""
    with ExitStack() as later:
        for turn in range(times):
            with doomed(run.stack, "housekeeper", point, 1 if turn else 2) as processes:
                if not turn:
                    is_past_all = later.enter_context(scheduled(run, PASSED, least=PASSED))
                wait_for_crash(processes, point, 40)
        yield
        wait_for(is_past_all, "each due time is submitted", 60)
