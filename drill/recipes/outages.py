"""A partner that is down for long while orders keep arriving: tests of the circuit breaker."""

from collections.abc import Iterator

from drill.recipes import Running, recipe
from drill.recipes.crashes import BUSY, IN_ERROR
from drill.recipes.partners import scripted, watch_windows
from drill.waiting import pause, wait_for

GATE = "SELECT state FROM orchestration_gate WHERE agent = %s"
ALERTS = """
SELECT count(*), count(*) FILTER (WHERE closed_at IS NULL) FROM orchestration_alert
WHERE fingerprint = 'gate/' || %s AND id > %s
"""
LAST_ALERT = "SELECT coalesce(max(id), 0) FROM orchestration_alert"
OVER_THRESHOLD = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
JOIN orchestration_policy p ON p.agent = s.agent
WHERE t.reference = ANY(%s) AND s.failure_count > p.failure_threshold
"""
# steps of other agents that only this outage could delay
WAITING = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.agent <> %s AND s.process_state IN ('pending', 'processing')
"""
RETRIED = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.agent <> %s AND s.attempt > 1
"""


@recipe
def long_outage(
    run: Running, *, agent: str = "payment", threshold: int = 5, lasts: float = 25
) -> Iterator[None]:
    """Take one partner down while many orders arrive; work of the other agents continues.

    The usual failure threshold applies, not a drill's high one: failures do not count while the
    breaker is open. Probes are sent one at a time; then the backlog follows at a growing rate.
    """
    (before,) = run.stack.sql(
        "SELECT failure_threshold FROM orchestration_policy WHERE agent = %s", agent
    )[0]
    last = run.stack.count(LAST_ALERT)
    run.stack.policy(failure_threshold=threshold)
    with scripted(run.stack, {"partner": agent, "fault": "down"}):
        yield
        wait_for(lambda: run.stack.sql(GATE, agent) != [("closed",)], "the breaker opens", 20)
        wait_for(lambda: run.stack.count(BUSY, agent) <= 1, "the requests in flight have ended", 20)
        watch_probes(run, agent, lasts)
        # how long that takes depends on the machine; that it ends while the partner is down does not
        others = f"the steps of other agents, which need not wait for {agent}, have ended"
        wait_for(lambda: not run.stack.count(WAITING, run.orders, agent), others, 120)
        assert run.stack.sql(ALERTS, agent, last) == [(1, 1)], "there is not exactly one open alert"
    watch_windows(run, 5)
    run.quiet()
    assert run.stack.sql(ALERTS, agent, last) == [(1, 0)], "there is not exactly one alert, closed"
    errors, over, retried = (
        run.stack.count(statement, run.orders, *more)
        for statement, more in ((IN_ERROR, ()), (OVER_THRESHOLD, ()), (RETRIED, (agent,)))
    )
    assert not errors, f"{errors} orders are in error"
    assert not over, f"{over} steps failed more often than their threshold"
    assert not retried, f"{retried} steps of other agents were retried"
    run.stack.policy(failure_threshold=before)


def watch_probes(run: Running, agent: str, seconds: float) -> None:
    """Fail if more than one request is in flight at a time, or if an order is in error."""
    for _ in range(int(seconds / 0.1)):
        probes = run.stack.count(BUSY, agent)
        assert probes <= 1, f"{probes} requests at once to {agent}, whose breaker is open"
        pause(0.1)
    errors = run.stack.count(IN_ERROR, run.orders)
    assert not errors, f"{errors} orders are in error while {agent} is down"
