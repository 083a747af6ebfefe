"""Deploys: the release changes while orders of the previous one are in flight."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack

from drill.deploys import previous
from drill.process_names import LEADERS, WORKERS
from drill.recipes import Running, recipe
from drill.recipes.partners import scripted
from drill.release import Release
from drill.stack import SUBMITTED
from drill.waiting import wait_for
from sasweb.stack import folders

SETTINGS = "drill.deploys.settings"
COLUMN = "ALTER TABLE orders_order ADD COLUMN wrapping text NOT NULL DEFAULT 'plain'"
NO_DEFAULT = "ALTER TABLE orders_order ALTER COLUMN wrapping DROP DEFAULT"
NO_COLUMN = "ALTER TABLE orders_order DROP COLUMN wrapping"
FAILING = "SELECT count(*) FROM orchestration_submission WHERE refused_at IS NULL AND problem <> ''"
REFUSED = "SELECT count(*) FROM orchestration_submission WHERE refused_at IS NOT NULL"
UNKNOWN = """
SELECT count(*) FROM orchestration_attempt a JOIN orchestration_step s ON s.id = a.step_id
JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND a.error_code = 'no_such_action'
"""
DONE_BY = "orchestration/migrations/0029_done_by.py"
IN_ERROR = """
SELECT s.id FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.process_state = 'error'
"""
ENDS = """
SELECT s.process_state, s.done_by, count(*) FROM orchestration_step s
JOIN orchestration_task t ON t.id = s.task_id JOIN orchestration_event e ON e.step_id = s.id
WHERE t.reference = ANY(%s) AND e.kind = 'by_hand' GROUP BY 1, 2
"""
# The share of orders that may fail by an unknown action: within a drill's short deadlines an old
# worker may take the same request several times. Without the return to the inbox half would fail.
UNLUCKY = 0.05
RETRIED_WITHIN = 60.0  # seconds: the longest wait until the next try


@recipe
def deploy(run: Running, *, change: str, together: bool = False, more: int = 60) -> Iterator[None]:
    """New code replaces the old, or runs beside it; orders placed from then on are of the new release."""
    new = _release(change)
    with ExitStack() as later:
        if together:
            for name in (*WORKERS, *LEADERS):
                later.callback(run.stack.beside(name, **new).end)
        else:
            _replace(later, run, new)
        run.place(more)
        yield
        run.quiet()
        failed = run.stack.count(UNKNOWN, run.orders)
        assert failed <= UNLUCKY * len(run.orders), (
            f"{failed} attempts failed by an action that only new workers know"
        )


@recipe
def rollout(run: Running, *, change: str, first: str, more: int = 60) -> Iterator[None]:
    """Deploy one part of the new release `first` (web, workers or migration), then the rest."""
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
            assert run.stack.count(FAILING), "the old workers accepted every submission"
            _replace(later, run, new)
        run.place(more, **new)
        _wait_for_all(run)


@recipe
def previous_release(run: Running, *, more: int = 60) -> Iterator[None]:
    """Run the processes of the release before this one on this release's tables, orders of both."""
    tree = previous.check_out(folders.make(run.stack.folder / "releases", folders.PASSABLE))
    # a database that was upgraded has tables of packages that this release does without
    run.stack.run([sys.executable, "manage.py", "migrate", "--verbosity=0"], tree=tree)
    with ExitStack() as later:
        for name in (*WORKERS, *LEADERS):
            later.enter_context(run.stack.replaced(name, tree=tree))
        run.place(more)
        run.place(more, tree=tree)
        yield
        run.quiet()
    _wait_for_all(run)


@recipe
def done_by_hand_before(run: Running, *, steps: int = 10) -> Iterator[None]:
    """Operators do steps by hand with the release that calls them skipped, beside this one."""
    tree = previous.check_out(
        folders.make(run.stack.folder / "releases", folders.PASSABLE), DONE_BY
    )
    confirmations = {"partner": "mail", "action": "send", "key": "*:send_confirmation:*"}
    with scripted(run.stack, {**confirmations, "fault": "reject", "times": steps}):
        yield
        run.quiet()
    failed = run.stack.sql(IN_ERROR, run.orders)
    assert len(failed) == steps, f"{len(failed)} steps are in error"
    for (step,) in failed:
        act = ["tasks", "done", str(step), "--result", '{"id": "by-hand"}', "--reason", "by phone"]
        run.stack.run([sys.executable, "manage.py", *act], tree=tree)
    ends = run.stack.sql(ENDS, run.orders)
    assert ends == [("processed", "?", steps)], f"what was done by hand is {ends}"


@recipe
def bad_release(run: Running, *, more: int = 60) -> Iterator[None]:
    """Deploy a release that cannot record any order, then roll it back."""
    with run.stack.replaced("work-submission", **_release("broken")):
        run.place(more)
        yield
        assert run.stack.count(FAILING), "the release recorded orders"
    _wait_for_all(run)


def _release(change: str) -> dict[str, str]:
    return {"DJANGO_SETTINGS_MODULE": SETTINGS, "DRILL_DEPLOY": change}


def _replace(later: ExitStack, run: Running, new: dict[str, str]) -> None:
    """Replace all processes, each by a fork of one that has loaded the new release."""
    release = later.enter_context(Release(run.stack, **new))
    for name in (*WORKERS, *LEADERS):
        later.enter_context(release.in_place_of(name))


def _wait_for_all(run: Running) -> None:
    """Wait until all orders and all submissions have ended; fail if a submission was refused."""
    run.quiet()
    none_left = "no submission is left"
    wait_for(lambda: run.stack.count(SUBMITTED) == 0, none_left, RETRIED_WITHIN)
    assert run.stack.count(REFUSED) == 0, "a submission was refused"
