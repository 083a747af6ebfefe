"""Deploys: the release changes while orders of the one before are in flight."""

from collections.abc import Iterator
from contextlib import ExitStack

from drill.recipes import Running, recipe
from drill.stack import LEADERS, POSTED, WORKERS, end
from drill.waiting import wait_for

SETTINGS = "drill.deploys.settings"
COLUMN = "ALTER TABLE orders_order ADD COLUMN wrapping text NOT NULL DEFAULT 'plain'"
NO_DEFAULT = "ALTER TABLE orders_order ALTER COLUMN wrapping DROP DEFAULT"
NO_COLUMN = "ALTER TABLE orders_order DROP COLUMN wrapping"
WAITS = "SELECT count(*) FROM orchestration_submission WHERE refused_at IS NULL AND problem <> ''"
REFUSED = "SELECT count(*) FROM orchestration_submission WHERE refused_at IS NOT NULL"
UNKNOWN = """
SELECT count(*) FROM orchestration_attempt a JOIN orchestration_step s ON s.id = a.step_id
JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND a.error_code = 'no_such_action'
"""
# A share of the orders: in so short a time as drills allow, an old worker may have taken a request
# again and again. Of those that were not passed on, half would fail.
UNLUCKY = 0.05
PATIENCE = 60  # seconds: what waited longest has its next try


@recipe
def deploy(run: Running, *, change: str, together: bool = False, more: int = 60) -> Iterator[None]:
    """New code replaces the old, or works beside it; orders placed from then on are the new ones."""
    new = _release(change)
    with ExitStack() as later:
        for name in (*WORKERS, *LEADERS):
            if together:
                later.callback(end, run.stack.beside(name, **new))
            else:
                later.enter_context(run.stack.replaced(name, **new))
        run.place(more)
        yield
        run.quiet()
        failed = run.stack.count(UNKNOWN, run.orders)
        assert failed <= UNLUCKY * len(run.orders), (
            f"{failed} attempts failed by an action that only new workers know"
        )


@recipe
def rollout(run: Running, *, change: str, first: str, more: int = 60) -> Iterator[None]:
    """One part of the new release comes `first`: web, workers or migration; then the rest of it."""
    new = _release(change)
    with ExitStack() as later:
        if change == "column":
            run.stack.sql(COLUMN)
            run.stack.sql(NO_DEFAULT)
            later.callback(run.stack.sql, NO_COLUMN)
        if first == "workers":
            _replace(later, run, new)
        web = new if first == "web" else {}
        run.place(more, **web)
        yield
        if first != "workers":
            assert run.stack.count(WAITS), "the workers of the old release could take everything"
            _replace(later, run, new)
        run.place(more, **new)
        _all_taken(run)


@recipe
def bad_release(run: Running, *, more: int = 60) -> Iterator[None]:
    """No order can be recorded, until the release is taken back."""
    with run.stack.replaced("work-submission", **_release("broken")):
        run.place(more)
        yield
        assert run.stack.count(WAITS), "orders could be recorded"
    _all_taken(run)


def _release(change: str) -> dict[str, str]:
    return {"DJANGO_SETTINGS_MODULE": SETTINGS, "DRILL_DEPLOY": change}


def _replace(later: ExitStack, run: Running, new: dict[str, str]) -> None:
    for name in (*WORKERS, *LEADERS):
        later.enter_context(run.stack.replaced(name, **new))


def _all_taken(run: Running) -> None:
    """Wait until all that was accepted is a task at its end, letters too; nothing was refused."""
    run.quiet()
    wait_for(lambda: run.stack.count(POSTED) == 0, "everything posted is a task", PATIENCE)
    assert run.stack.count(REFUSED) == 0, "something was refused"
