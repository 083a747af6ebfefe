"""Fill in what workflows load for requests, after the claim's commit and before sending (P22).

The application's code runs here without a lock of the engine. A failure is the step's own, and is
recorded like a reply: retried with backoff, and then an error. The loaded values are kept with the step
until it ends: a repeat under one key has one content, and the values may be personal.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from .. import registry
from ..database import clock, sql
from ..messaging.messages import Reply, Request
from ..payloads.limits import why_not_sent
from ..payloads.placeholders import Loads, Unresolved, filled, pick
from ..states import Health, Outcome
from ..tracing.subject import about

logger = logging.getLogger(__name__)

LOADED_BEFORE = """
SELECT id, loaded->'values' FROM orchestration_step
WHERE id = ANY(%(ids)s) AND (loaded->>'generation')::int = generation
"""

KEEP = """
UPDATE orchestration_step s
SET loaded = jsonb_build_object('generation', s.generation, 'values', l.values)
FROM unnest(%(ids)s::bigint[], %(attempts)s::int[], %(generations)s::int[], %(values)s::jsonb[])
    AS l (id, attempt, generation, values)
WHERE s.id = l.id AND s.process_state = 'processing' AND s.locked_by IS NOT NULL
    AND (s.attempt, s.generation) = (l.attempt, l.generation)
RETURNING s.id
"""


@dataclass(frozen=True, kw_only=True)
class UnfilledRequest:
    """A claimed request without the values to load, its workflow, and its agent."""

    agent: str
    workflow: str
    request: Request
    loads: Loads


@dataclass(kw_only=True)
class Filled:
    """The requests to send, by agent, and the replies to those that cannot be sent."""

    requests: dict[str, list[Request]] = field(default_factory=lambda: defaultdict(list))
    replies: list[Reply] = field(default_factory=list)


class _Failed(Exception):
    """A request cannot be sent: how its attempt ended, and why."""

    def __init__(self, outcome: Outcome, code: str, why: str) -> None:
        super().__init__(why)
        self.outcome, self.code = outcome, code


Loaded = tuple[UnfilledRequest, Mapping[str, Any] | _Failed | None]


def fill_in(requests: Sequence[UnfilledRequest], by: str) -> Filled:
    """Return requests with what their workflows load; `by` replies to those that cannot be sent.

    What was loaded for an earlier attempt under the same key is sent again. It is kept before
    anything is sent; a request whose step was given up meanwhile is dropped.
    """
    done = Filled()
    values = _loaded_before([item.request for item in requests])
    fresh = [item for item in requests if item.request.step not in values]
    for item, loaded in _load(fresh):
        try:
            values[item.request.step] = _values(item, loaded)
        except _Failed as failed:
            done.replies.append(_reply(item.request, by, failed))
    ready = [item for item in fresh if item.request.step in values]
    gone = {item.request.step for item in ready}
    gone -= _keep([item.request for item in ready], values)
    for item in requests:
        if item.request.step in values and item.request.step not in gone:
            payload = filled(item.request.payload, item.loads, values[item.request.step])
            done.requests[item.agent].append(item.request.altered(payload=payload))
    return done


def _loaded_before(requests: Sequence[Request]) -> dict[int, list[Any]]:
    """Return what was loaded for earlier attempts under the same keys, by step."""
    again = [request.step for request in requests if request.attempt > 1]
    rows = sql.run(LOADED_BEFORE, {"ids": again}) if again else []
    return {step: json.loads(values) for step, values in rows}


@transaction.atomic
def _keep(requests: Sequence[Request], values: Mapping[int, Sequence[Any]]) -> set[int]:
    """Keep what was loaded for requests; return their steps, but for those given up meanwhile.

    The wait for a lock is short.
    """
    if not requests:
        return set()
    parameters = {
        "ids": [request.step for request in requests],
        "attempts": [request.attempt for request in requests],
        "generations": [request.generation for request in requests],
        "values": sql.as_json([values[request.step] for request in requests]),
    }
    return {step for (step,) in sql.run(sql.BRIEFLY + KEEP, parameters)}


def _load(requests: Sequence[UnfilledRequest]) -> list[Loaded]:
    """Return what the workflows load for each, or why they do not; one call for each workflow."""
    by_workflow: dict[str, list[UnfilledRequest]] = defaultdict(list)
    for item in requests:
        by_workflow[item.workflow].append(item)
    return [loaded for name, group in by_workflow.items() for loaded in _loaded(name, group)]


def _loaded(workflow: str, requests: Sequence[UnfilledRequest]) -> list[Loaded]:
    declared = registry.workflows.get(workflow)
    if declared is None or declared.load is None:
        why = f"no code that runs here declares what {workflow!r} loads"
        return [(item, _Failed(Outcome.TRANSIENT, "no_such_load", why)) for item in requests]
    try:
        with transaction.atomic():
            loaded = declared.load([item.request.reference for item in requests])
    except Exception as error:  # an application may raise anything
        if len(requests) > 1 and not sql.is_unavailable(error):  # others need not suffer from one
            return [loaded for item in requests for loaded in _loaded(workflow, [item])]
        first = requests[0].request
        logger.exception(
            "%s cannot be loaded for %s", workflow, first.reference, extra=about(first)
        )
        why = f"{type(error).__name__}: {sql.first_line(error)}"
        return [(item, _Failed(Outcome.TRANSIENT, "load_failed", why)) for item in requests]
    return [(item, loaded.get(item.request.reference)) for item in requests]


def _values(item: UnfilledRequest, loaded: Mapping[str, Any] | _Failed | None) -> list[Any]:
    """Return the values that a request takes of what was loaded; raise `_Failed` if it cannot be sent."""
    if isinstance(loaded, _Failed):
        raise loaded
    try:
        values = pick(item.loads, loaded or {})
        why = why_not_sent(filled(item.request.payload, item.loads, values))
    except (Unresolved, TypeError, ValueError) as error:
        raise _Failed(Outcome.REJECTED, "not_loaded", str(error)) from error
    if why:
        raise _Failed(Outcome.REJECTED, "not_loaded", f"the request cannot be sent: {why}")
    return values


def _reply(request: Request, by: str, failed: _Failed) -> Reply:
    now = clock.now()
    return Reply(
        step=request.step,
        task=request.task,
        attempt=request.attempt,
        outcome=failed.outcome.value,
        result={},
        code=failed.code,
        message=sql.storable(str(failed)),
        tries=1,
        started=now,
        ended=now,
        by=by,
        generation=request.generation,
        dispatch=request.dispatch,
        health=Health.NOTHING.value,
    )
