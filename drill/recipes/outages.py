"""Partners that are down for long, while orders keep arriving: what their circuit breaker has to do."""

from collections.abc import Iterator

from drill.recipes import Running, recipe
from drill.recipes.partners import watch_windows
from drill.recipes.processes import IN_ERROR
from drill.waiting import let_pass, wait_for

OUT = """
SELECT count(*) FROM orchestration_step
WHERE agent = %s AND process_state = 'processing' AND locked_by IS NOT NULL
"""
GATE = "SELECT state FROM orchestration_gate WHERE agent = %s"
ALERTS = """
SELECT count(*), count(*) FILTER (WHERE closed_at IS NULL) FROM orchestration_alert
WHERE fingerprint = 'gate/' || %s AND id > %s
"""
LAST_ALERT = "SELECT coalesce(max(id), 0) FROM orchestration_alert"
WORN = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
JOIN orchestration_policy p ON p.agent = s.agent
WHERE t.reference = ANY(%s) AND s.failure_count > p.failure_threshold
"""
# steps of other agents that nothing but this one's outage could keep from being done
WAITING = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.agent <> %s AND s.process_state IN ('pending', 'processing')
"""
TROUBLED = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.agent <> %s AND s.attempt > 1
"""


@recipe
def long_outage(
    run: Running, *, agent: str = "payment", threshold: int = 5, lasts: float = 25
) -> Iterator[None]:
    """One partner is down while very many orders arrive; the others' work goes on.

    The policy's own threshold is in force, not a drill's high one: failures do not count while the
    breaker is open. Probes go out one at a time; more and more of the backlog follows.
    """
    (before,) = run.stack.sql(
        "SELECT failure_threshold FROM orchestration_policy WHERE agent = %s", agent
    )[0]
    last = run.stack.count(LAST_ALERT)
    run.stack.policy(failure_threshold=threshold)
    run.stack.sandbox("/faults", {"faults": [{"partner": agent, "fault": "down"}]}, "PUT")
    try:
        yield
        wait_for(lambda: run.stack.sql(GATE, agent) != [("closed",)], "the breaker opens", 20)
        wait_for(lambda: run.stack.count(OUT, agent) <= 1, "what was under way is back", 20)
        watch_probes(run, agent, lasts)
        waiting = run.stack.count(WAITING, run.orders, agent)
        assert not waiting, f"{waiting} steps of other agents waited for {agent}"
        assert run.stack.sql(ALERTS, agent, last) == [(1, 1)], "not one open alert"
    finally:
        run.stack.sandbox("/faults", method="DELETE")
    watch_windows(run, 5)
    run.quiet()
    assert run.stack.sql(ALERTS, agent, last) == [(1, 0)], "not one alert, closed"
    errors, worn, troubled = (
        run.stack.count(statement, run.orders, *more)
        for statement, more in ((IN_ERROR, ()), (WORN, ()), (TROUBLED, (agent,)))
    )
    assert not errors, f"{errors} orders are in error"
    assert not worn, f"{worn} steps failed more often than their threshold"
    assert not troubled, f"{troubled} steps of other agents were tried again"
    run.stack.policy(failure_threshold=before)


def watch_probes(run: Running, agent: str, seconds: float) -> None:
    """See to it that never more than one request is under way, and that no order is in error."""
    for _ in range(int(seconds / 0.1)):
        out = run.stack.count(OUT, agent)
        assert out <= 1, f"{out} requests to {agent}, whose breaker is open"
        let_pass(0.1)
    errors = run.stack.count(IN_ERROR, run.orders)
    assert not errors, f"{errors} orders are in error while {agent} is down"
