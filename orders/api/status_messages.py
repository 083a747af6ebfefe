"""Status messages: an application fetches and acknowledges its own (P27)."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from threading import Lock
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import ConfigDict, Field

from orchestration import api

from . import schemas
from .auth import Token, caller
from .problems import conflict, only
from .scopes import READ_STATUS

router = Router(tags=["Status messages"])

# A waiting request occupies a thread of the web server, so one may wait in each process; others are
# answered at once. Waiting only saves requests.
LONGEST_WAIT = 20  # seconds
LOOK_EVERY = 0.5  # seconds
_waiting = Lock()


class StatusMessage(Schema):
    """A change of an order. Numbers rise by one per order; a lower number is stale."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"id": 4711, "workflow": "process_order", "reference": schemas.ORDER, "number": 2,
                 "kind": "completed", "at": schemas.PLACED, "detail": {}}
            ]
        }
    )  # fmt: skip

    id: Annotated[int, Field(description="Acknowledge the message by this id.")]
    workflow: Annotated[str, Field(description="The workflow of the order: process_order.")]
    reference: Annotated[str, Field(description="The order's id.")]
    number: int
    kind: Literal[
        "received", "step", "action_needed", "failed", "resumed", "completed", "undoing", "undone",
        "undoing_part",
        "refused", "reminder", "amended", "set_aside", "closed",
    ]  # fmt: skip
    at: datetime
    detail: Annotated[dict[str, Any], Field(description="Details of some kinds; see the guide.")]


class StatusMessages(Schema):
    """The oldest unacknowledged messages; those of one order by number."""

    messages: list[StatusMessage]


class Acknowledgement(schemas.Strict):
    """Messages that you have processed."""

    ids: Annotated[
        list[Annotated[int, Field(ge=1, le=2**63 - 1), schemas.NUMBER]],
        Field(min_length=1, max_length=1000, examples=[[4711, 4712]]),
    ]


class Acknowledged(Schema):
    """How many messages were acknowledged now; unknown ids are ignored."""

    acknowledged: int


@router.get(
    "",
    auth=Token(READ_STATUS),
    summary="Fetch status messages",
    operation_id="fetchStatusMessages",
    response=StatusMessages,
)
def fetch(
    request: HttpRequest,
    wait: Annotated[
        int,
        Query(
            ge=0,
            le=LONGEST_WAIT,
            description="Seconds to wait for a message if there is none. The wait may end early.",
        ),
    ] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of messages.")] = 100,
    after: Annotated[
        int, Query(ge=0, le=2**63 - 1, description="Only messages with a higher id.")
    ] = 0,
) -> Mapping[str, Any]:
    """Fetch the oldest unacknowledged messages of your application.

    Fetching removes nothing: each message is returned again until it is acknowledged. Messages of
    one order are sorted by number.
    """
    only(request, "wait", "limit", "after")
    name = _fetching(request)
    messages = api.status_messages(name, limit=limit, after=after)
    if not messages and wait:
        with _place_to_wait() as has_place:
            give_up_at = time.monotonic() + (wait if has_place else 0)
            while not messages and time.monotonic() < give_up_at:
                time.sleep(min(LOOK_EVERY, max(0.0, give_up_at - time.monotonic())))
                messages = api.status_messages(name, limit=limit, after=after)
    return {"messages": messages}


@router.post(
    "/acknowledge",
    auth=Token(READ_STATUS),
    summary="Acknowledge status messages",
    operation_id="acknowledgeStatusMessages",
    response=Acknowledged,
)
def acknowledge(request: HttpRequest, done: Acknowledgement) -> Mapping[str, Any]:
    """Acknowledge messages, so that they are not returned again. Repeating it is harmless."""
    return {"acknowledged": api.acknowledge(_fetching(request), done.ids)}


def _fetching(request: HttpRequest) -> str:
    """Return the caller's name; raise `Problem` if a consumer process takes its messages."""
    who = caller(request)
    if who.delivery == api.Delivery.CONSUMER:
        raise conflict(
            "taken_by_a_consumer", f"Messages to {who.name} are delivered to a consumer process."
        )
    return who.name


@contextmanager
def _place_to_wait() -> Iterator[bool]:
    """Hold the only place to wait, if it is free."""
    free = _waiting.acquire(blocking=False)
    try:
        yield free
    finally:
        if free:
            _waiting.release()
