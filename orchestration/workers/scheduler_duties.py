"""What schedulers do beside their turns: begin undos, ask services, join children, record early reports."""

import logging
from collections.abc import Callable, Collection
from uuid import UUID

from .. import conf, registry
from ..applications.status_messages import queue_of
from ..database import batches, prepared
from ..messaging import queues
from ..models.join import JOINS_DUE
from ..models.undo import UNDO_REQUESTED
from ..models.wait import FIRST_LOOKS, REPORTED_EARLY
from ..scheduler import TurnResult
from ..tracing.subject import about_task
from ..transitions import joined, looks, reported, requested_undos
from ..transitions.handled import Handled

logger = logging.getLogger(__name__)
# One statement for all, as a scheduler looks at each doorbell, and seldom is anything due
DUE = f"""
SELECT {UNDO_REQUESTED}, {JOINS_DUE}, {REPORTED_EARLY},
    coalesce(array_agg(l.agent) FILTER (WHERE l.look_at <= (SELECT clock_timestamp())), ARRAY[]::text[]),
    extract(epoch FROM min(l.look_at) - (SELECT clock_timestamp()))::float8
FROM ({FIRST_LOOKS}) l
"""  # noqa: S608 - constants of our own


def run(*, ask: bool = True) -> TurnResult:
    """Do what is due; return the agents whose backlog has grown. What fails is retried with the next look.

    With `ask`, services are asked about a few of the steps that are awaited. `again_in` is set if more are
    due, or will be in less than a second: a leader rings for what is due later.
    """
    result = TurnResult()
    ((undos, joins, early, due_agents, first_look),) = prepared.run(DUE, {})
    done = Handled()
    if undos:
        _each(requested_undos.requested_tasks, requested_undos.begin_requested, done,
              "the undo of task %s cannot begin")  # fmt: skip
    if joins:
        _each(joined.tasks_to_join, joined.join, done,
              "the children of task %s cannot be looked at")  # fmt: skip
    if early:
        _each(reported.reported_early, reported.apply_early, done,
              "what was reported of task %s cannot be recorded")  # fmt: skip
    queues.try_to_ring_all(dict.fromkeys(map(queue_of, done.applications), ()))
    if ask and (agents := registry.agents.keys() & set(due_agents)):
        asked = looks.look(agents, conf.LOOKS_AT_A_TIME)
        queues.try_to_ring_all(
            {agent: [request.dump() for request in requests] for agent, requests in asked.items()}
        )
    if first_look is not None and first_look < conf.INBOX_IDLE_S:
        result.again_in = max(first_look, conf.LOOKS_INTERVAL_S)
    result.more |= done.agents
    return result


def _each(
    find: Callable[[int, Collection[UUID]], list[UUID]],
    deal: Callable[[Collection[UUID]], Handled],
    done: Handled,
    failure: str,
) -> None:
    """Deal with tasks in batches; one that fails never blocks the others."""

    def handle(tasks: Collection[UUID]) -> int:
        part = deal(tasks)
        done.add(part)
        return part.handled

    _, failing = batches.all_found(find, handle, conf.DUTY_BUDGET_S)
    for task, error in failing.items():
        logger.error(failure, task, exc_info=error, extra=about_task(task))
