"""Status messages: an application fetches its own, and acknowledges what it has dealt with (P27)."""

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
from orders.scopes import READ_STATUS

from . import shapes
from .access import Token, caller
from .problems import conflict, only

router = Router(tags=["Status messages"])

# Who waits occupies a thread of the web server. So one may in each process, and the others are
# answered at once: waiting saves requests, and nothing depends on it.
LONGEST_WAIT = 20  # seconds
LOOK_EVERY = 0.5  # seconds
_waiting = Lock()


class StatusMessage(Schema):
    """What became of an order. Numbers rise by one per order; older ones are stale."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"id": 4711, "workflow": "process_order", "reference": shapes.ORDER, "number": 2,
                 "kind": "completed", "at": shapes.PLACED, "detail": {}}
            ]
        }
    )  # fmt: skip

    id: Annotated[int, Field(description="To acknowledge it by.")]
    workflow: Annotated[str, Field(description="What is done for the order: process_order.")]
    reference: Annotated[str, Field(description="The order's id.")]
    number: int
    kind: Literal[
        "received", "step", "action_needed", "failed", "resumed", "completed", "undoing", "undone",
        "refused", "set_aside", "closed",
    ]  # fmt: skip
    at: datetime
    detail: Annotated[dict[str, Any], Field(description="More about some kinds; see our guide.")]


class StatusMessages(Schema):
    """The oldest messages that are not acknowledged; those of one order in their order."""

    messages: list[StatusMessage]


class Acknowledgement(shapes.Strict):
    """The messages that you have dealt with: they do not come again."""

    ids: Annotated[
        list[Annotated[int, Field(ge=1, le=2**63 - 1), shapes.PLAIN]],
        Field(min_length=1, max_length=1000, examples=[[4711, 4712]]),
    ]


class Acknowledged(Schema):
    """How many of them there were; those that are gone already do no harm."""

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
            description="Seconds to wait for a message if there is none. May be cut short.",
        ),
    ] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="Messages at most.")] = 100,
    after: Annotated[
        int, Query(ge=0, le=2**63 - 1, description="Only those with a higher id than this.")
    ] = 0,
) -> Mapping[str, Any]:
    """Fetch the oldest messages to your application that are not acknowledged.

    Nothing is removed by this: each message comes again until it is acknowledged. Those of one
    order come in the order of their numbers.
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
    """Say that messages were dealt with: they do not come again. To say it twice does no harm."""
    return {"acknowledged": api.acknowledge(_fetching(request), done.ids)}


def _fetching(request: HttpRequest) -> str:
    """Return the name of the caller; what a consumer of ours takes is not to be had here."""
    who = caller(request)
    if who.delivery == api.Delivery.CONSUMER:
        raise conflict("taken_by_a_consumer", f"The messages to {who.name} are not fetched.")
    return who.name


@contextmanager
def _place_to_wait() -> Iterator[bool]:
    """Give the place to wait, if nobody has it."""
    free = _waiting.acquire(blocking=False)
    try:
        yield free
    finally:
        if free:
            _waiting.release()
