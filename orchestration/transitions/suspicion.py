"""Find out whether an expired attempt speaks against its service (P10)."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from ..database import sql
from ..decisions.gate import Observation
from ..states import Health
from .failures import Failed

# Silence counts against the service only if no process of the engine can be the cause: since the
# dispatch no scheduler and no worker of the queue started or ended, Redis was reachable, its replies
# were read, and the clock, by which agents stop, did not jump.
SUSPECTED = """
SELECT s.agent, extract(epoch FROM s.dispatched_at)::float8
FROM orchestration_step s WHERE s.id = ANY(%(ids)s)
  AND (s.dispatched_at > %(since)s::timestamptz) IS NOT FALSE
  AND EXISTS (SELECT 1 FROM orchestration_worker w WHERE w.queue = s.agent)
  AND EXISTS (SELECT 1 FROM orchestration_worker w WHERE w.queue = 'scheduler')
  AND NOT EXISTS (SELECT 1 FROM orchestration_clockjump j WHERE j.at >= s.dispatched_at)
  AND s.dispatched_at <= (SELECT clock_timestamp())
  AND NOT EXISTS (SELECT 1 FROM orchestration_worker w WHERE w.queue IN (s.agent, 'scheduler')
    AND (w.started_at > s.dispatched_at OR w.seen_at < (SELECT clock_timestamp()) - interval '5 seconds'))
"""


def suspected(
    failed: Sequence[Failed], *, since: datetime | None = None
) -> dict[str, list[Observation]]:
    """Return the expiries for which the service, not one of our processes, is to blame, by agent.

    What was dispatched until `since` may have been lost on its way, or its reply.
    """
    silent = [step.view.id for step in failed if step.silent and not step.view.own_trouble]
    observed: dict[str, list[Observation]] = defaultdict(list)
    rows = sql.run(SUSPECTED, {"ids": silent, "since": since}) if silent else []
    for agent, sent_at in rows:
        observed[agent].append(Observation(health=Health.BAD, sent_at=sent_at))
    return observed
