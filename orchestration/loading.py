"""Requests get what their workflows load, between the claim's commit and the sending (P22).

The application's code runs here without any lock of the engine's. What fails is the step's own
trouble, and is recorded like a reply: retried with backoff, and then an error.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction

from . import clock, registry, sql
from .messages import Reply, Request
from .payloads.limits import why_not_sent
from .placeholders import Loads, Unresolved, filled, pick
from .states import Health, Outcome
from .transitions import loaded

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A claimed request of a workflow that lacks what is to be loaded, and for which agent it is."""

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


def fill_in(wanted: Sequence[Wanted], by: str) -> Filled:
    """Return requests with what their workflows load; `by` replies to those that cannot be sent.

    What was loaded for an earlier attempt under the same key is sent again. It is kept before
    anything is sent; a request whose step was given up meanwhile is dropped.
    """
    done = Filled()
    values = loaded.kept([one.request for one in wanted])
    fresh = [one for one in wanted if one.request.step not in values]
    for one, found in _load(fresh):
        try:
            values[one.request.step] = _picked(one, found)
        except _Failed as failed:
            done.replies.append(_reply(one.request, by, failed))
    ready = [one for one in fresh if one.request.step in values]
    gone = {one.request.step for one in ready}
    gone -= loaded.keep([one.request for one in ready], values)
    for one in wanted:
        if one.request.step in values and one.request.step not in gone:
            payload = filled(one.request.payload, one.loads, values[one.request.step])
            done.requests[one.agent].append(replace(one.request, payload=payload))
    return done


def _load(wanted: Sequence[Wanted]) -> list[tuple[Wanted, Mapping[str, Any] | _Failed | None]]:
    """Return what the workflows load for each, or why they do not; one call for each workflow."""
    by_workflow: dict[str, list[Wanted]] = defaultdict(list)
    for one in wanted:
        by_workflow[one.workflow].append(one)
    return [found for name, some in by_workflow.items() for found in _loaded(name, some)]


def _loaded(
    workflow: str, wanted: Sequence[Wanted]
) -> list[tuple[Wanted, Mapping[str, Any] | _Failed | None]]:
    declared = registry.workflows.get(workflow)
    if declared is None or declared.load is None:
        why = f"no code that runs here declares what {workflow!r} loads"
        return [(one, _Failed(Outcome.TRANSIENT, "no_such_load", why)) for one in wanted]
    try:
        with transaction.atomic():
            found = declared.load([one.request.reference for one in wanted])
    except Exception as error:  # an application may raise anything
        if len(wanted) > 1 and not sql.is_unavailable(error):  # others need not suffer from one
            return [found for one in wanted for found in _loaded(workflow, [one])]
        logger.exception("%s cannot be loaded for %s", workflow, wanted[0].request.reference)
        why = f"{type(error).__name__}: {sql.first_line(error)}"
        return [(one, _Failed(Outcome.TRANSIENT, "load_failed", why)) for one in wanted]
    return [(one, found.get(one.request.reference)) for one in wanted]


def _picked(one: Wanted, found: Mapping[str, Any] | _Failed | None) -> list[Any]:
    """Return the values that a request takes of what was loaded; raise `_Failed` if it cannot be sent."""
    if isinstance(found, _Failed):
        raise found
    try:
        values = pick(one.loads, found or {})
        why = why_not_sent(filled(one.request.payload, one.loads, values))
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
