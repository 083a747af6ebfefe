"""Place, read, list and cancel an application's orders."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID, uuid5

from django.db.models import Q
from django.http import HttpRequest
from ninja import Body, Header, Query, Router, Status
from pydantic import Field

from orchestration import api
from orders.lifecycle import changes, fewer, queries, readdressing, removing
from orders.lifecycle.message import MAX_LINES, fingerprint
from orders.models import Order, Placement
from orders.shop.forms import AddressForm

from . import order_json, pricing, schemas
from .auth import Token, caller, check_priority
from .placing import content_of, key_used, place_new, placed
from .problems import conflict, invalid, not_found, only
from .scopes import READ_ORDERS, WRITE_ORDERS

router = Router(tags=["Orders"])


class NewRemoval(schemas.Strict):
    """Units that are left out of an order."""

    lines: Annotated[
        list[schemas.NewLine],
        Field(min_length=1, max_length=MAX_LINES, description="Each product once."),
    ]


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CURSOR = "^([0-9]{1,16}-[0-9a-f]{32})?$"  # the last order of a page: its time in µs, and its id
SUBMITTED_WITHIN = 1  # seconds in which an order usually becomes a task
Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="A new key for each order. A repeated request with the same key returns the same "
        "answer and places nothing. Keys do not expire.",
        examples=["2b1c9f0e-5d6c-4a53-8d8e-1f0c8a7a3f11"],
    ),
]


@router.post(
    "",
    auth=Token(WRITE_ORDERS),
    summary="Place an order",
    operation_id="placeOrder",
    response={202: schemas.Placed},
)
def place(request: HttpRequest, order: schemas.NewOrder, idempotency_key: Key) -> Status[Any]:
    """Place an order at today's prices.

    An accepted order is stored durably: it will be completed or undone, and a status message reports
    which. The same key with the same content returns the same answer; with other content the request
    is refused.
    """
    who = caller(request)
    order_id = uuid5(who.id, idempotency_key)
    content = fingerprint(content_of(order))
    before = placed(order_id, who.name)
    if before is None:
        check_priority(order.priority, who)
        before = place_new(order, order_id, content, who.name)
    if before.fingerprint != content:
        raise key_used()
    return Status(202, order_json.placed(request, before))


@router.get(
    "",
    auth=Token(READ_ORDERS),
    summary="List your orders",
    operation_id="listOrders",
    response=schemas.Orders,
)
def list_orders(
    request: HttpRequest,
    limit: Annotated[int, Query(ge=1, le=200, description="Orders per page.")] = 50,
    cursor: Annotated[str, Query(pattern=CURSOR, description="Opaque; taken from `next`.")] = "",
) -> Mapping[str, Any]:
    """List your application's orders, newest first, page by page.

    Orders placed meanwhile do not shift the pages.
    """
    only(request, "limit", "cursor")
    rows = Placement.objects.filter(application=caller(request).name)
    if cursor:
        at, last = _read_cursor(cursor)
        rows = rows.filter(Q(created_at__lt=at) | Q(created_at=at, order__lt=last))
    page = list(rows.order_by("-created_at", "-order")[: limit + 1])
    more, page = page[limit:], page[:limit]
    taken = Order.objects.in_bulk([row.order for row in page])
    following = urlencode({"limit": limit, "cursor": _cursor(page[-1])}) if more else ""
    here = request.build_absolute_uri(request.path)
    return {
        "orders": [order_json.summary(request, row, taken.get(row.order)) for row in page],
        "next": f"{here}?{following}" if more else None,
    }


@router.get(
    "/{uuid:order_id}",
    auth=Token(READ_ORDERS),
    summary="Read an order",
    operation_id="readOrder",
    response=schemas.Order,
    url_name="order",
)
def read(request: HttpRequest, order_id: UUID) -> Mapping[str, Any]:
    """Read an order and its progress. To follow many orders, fetch status messages instead."""
    return order_json.full(request, _own(request, order_id))


@router.post(
    "/{uuid:order_id}/cancel",
    auth=Token(WRITE_ORDERS),
    summary="Cancel an order",
    operation_id="cancelOrder",
    response={202: schemas.Order},
)
def cancel(
    request: HttpRequest,
    order_id: UUID,
    why: Annotated[schemas.Cancellation | None, Body()] = None,
) -> Status[Any]:
    """Undo everything that was done for an order: charges are refunded, reservations released.

    The request is carried out later: `cancellation` is `asked` until the order is `undoing`, or
    `refused` if it came too late. A status message reports the end. Cancelling again changes nothing.
    """
    row = _own(request, order_id)
    if queries.progress(order_id) is None:
        problem = conflict("not_taken_yet", "The order is not in process yet.")
        problem.headers = {"Retry-After": str(SUBMITTED_WITHIN)}
        raise problem
    reason = (why.reason if why else "") or "cancelled by its application"
    actor = f"application {caller(request).name}"
    refusal = changes.cancel(order_id, actor=actor, reason=reason)
    # not undoable: it is cancelled, being cancelled, or the request is pending
    if refusal not in {None, api.Refusal.NOT_UNDOABLE}:
        raise conflict("cannot_be_cancelled", f"The order cannot be cancelled: {refusal.value}.")
    return Status(202, order_json.full(request, row))


@router.post(
    "/{uuid:order_id}/address",
    auth=Token(WRITE_ORDERS),
    summary="Change the address of an order",
    operation_id="changeAddress",
    response={202: schemas.Order},
)
def change_address(request: HttpRequest, order_id: UUID, address: schemas.Address) -> Status[Any]:
    """Send an order elsewhere in its country, until its parcel is booked.

    The request is carried out later: `address_change` is `asked` until then, or `refused` if it
    came too late.
    """
    row = _own(request, order_id)
    form = AddressForm(address.model_dump())
    if not form.is_valid():
        raise invalid([pricing.field_error(name, errors) for name, errors in form.errors.items()])
    actor = f"application {caller(request).name}"
    try:
        refusal = readdressing.readdress(order_id, form.address(), actor=actor)
    except Order.DoesNotExist:
        raise conflict("not_taken_yet", "The order is not in process yet.") from None
    except readdressing.OtherCountry:
        detail = "Shipping and tax were agreed for the order's country."
        raise conflict("cannot_be_readdressed", detail) from None
    if refusal is not None:
        detail = "The order is on its way, stopped, cancelled, or another change is pending."
        raise conflict("cannot_be_readdressed", detail)
    return Status(202, order_json.full(request, row))


@router.post(
    "/{uuid:order_id}/remove",
    auth=Token(WRITE_ORDERS),
    summary="Remove units from an order",
    operation_id="removeLines",
    response={202: schemas.Order},
)
def remove_lines(
    request: HttpRequest, order_id: UUID, what: NewRemoval, idempotency_key: Key
) -> Status[Any]:
    """Leave units out of an order, once its goods are reserved and until its parcel is booked.

    The request is carried out later: `removal` is `asked` until then, or `refused` if it came too late. The
    order costs less by the rules of the checkout; shipping stays. The same key for the same order removes
    once; with other content the request is refused.
    """
    row = _own(request, order_id)
    pricing.check_each_once(what.lines)
    units = {line.sku: line.quantity for line in what.lines}
    actor, id_ = f"application {caller(request).name}", uuid5(order_id, f"remove:{idempotency_key}")
    try:
        refusal = removing.remove(order_id, units, id_=id_, actor=actor)
    except Order.DoesNotExist:
        raise conflict("not_taken_yet", "The order is not in process yet.") from None
    except removing.OtherRemoval:
        raise key_used() from None
    except fewer.NotRemovable:
        detail = "The order has fewer units of that, or they are made for its customer."
        raise conflict("not_removable", detail) from None
    except fewer.NothingLeft:
        raise conflict("nothing_left", "Nothing would be sent. Cancel the order instead.") from None
    if refusal is not None:
        detail = (
            "The goods are not reserved yet, or are on their way, or another change is pending."
        )
        raise conflict("not_removable", detail)
    return Status(202, order_json.full(request, row))


def _own(request: HttpRequest, order: UUID) -> Placement:
    """Return the caller's placement; another application's order is not found."""
    placement = placed(order, caller(request).name)
    if placement is None:
        raise not_found("Unknown order.")
    return placement


def _cursor(row: Placement) -> str:
    return f"{(row.created_at - EPOCH) // timedelta(microseconds=1)}-{row.order.hex}"


def _read_cursor(cursor: str) -> tuple[datetime, UUID]:
    at, _, order = cursor.partition("-")
    return EPOCH + timedelta(microseconds=int(at)), UUID(order)
