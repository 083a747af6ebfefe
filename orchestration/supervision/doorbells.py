"""Ring for submissions, requests, steps and undos that lie unserved: a lost doorbell costs seconds."""

from .. import conf, policies
from ..cluster.duty import Duty, Sweep
from ..database import prepared
from ..messaging import queues, redis_breaker
from ..models import low_water
from ..models.hold import holds_agent
from ..models.inbox import SUBMISSIONS
from ..models.join import JOINS_DUE
from ..models.low_water import AGENTS_FROM, IN_FLIGHT, MAY_GO
from ..models.request import REQUESTS, waits_for_person
from ..models.undo import UNDO_REQUESTED
from ..models.wait import ANY_TO_ASK, REPORTED_EARLY
from ..states import LOCAL
from ..transitions.gates import FIRST

# Submissions and applications' requests that were posted and not taken for a while, or whose retry is due:
# along submission_due and request_due. Requests that wait for a person are passed over.
POSTED = SUBMISSIONS.is_overdue()
REQUESTED = REQUESTS.is_overdue(f"NOT {waits_for_person('m')}")

# Steps to claim, where their agent is not held, or to compute (index step_turn), and what schedulers do
# beside that.
CLAIMABLE = f"""
EXISTS (SELECT FROM {AGENTS_FROM} WHERE NOT {holds_agent("m.agent")} AND {MAY_GO})
OR {FIRST.format(agent=f"'{LOCAL}'")} IS NOT NULL
OR {UNDO_REQUESTED} OR {JOINS_DUE} OR {REPORTED_EARLY} OR {ANY_TO_ASK}
"""

# What lies unserved on a queue whose work is rows
UNSERVED = {queues.SUBMISSION: f"{POSTED} OR {REQUESTED}", queues.SCHEDULER: CLAIMABLE}
LOOK = f"SELECT {', '.join(UNSERVED.values())}"


def ring(_: Sweep) -> None:
    """Ring for rows that are due and not served, and for inboxes that are not empty."""
    ((*due,),) = prepared.run(LOOK, low_water.all_agents())
    for name, is_due in zip(UNSERVED, due, strict=True):
        if is_due:
            queues.try_to_ring(name)
    try:
        waiting = queues.waiting([queues.SCHEDULER, *policies.agents()])
    except redis_breaker.Unreachable:
        return
    for name in waiting:
        queues.try_to_ring(name)


# While a step is in flight, the doorbell of its request or of its reply may be lost; the interval is for all
# other messages for which no row waits.
RING_DOORBELLS = Duty(
    name="ring doorbells",
    run=ring,
    due=" OR ".join((*UNSERVED.values(), IN_FLIGHT)),
    every=conf.DUTY_INTERVAL_S,
    parameters=low_water.all_agents,
)
