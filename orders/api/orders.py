"""Orders of an application: placed as the checkout places them, read, listed, cancelled."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID, uuid5

from django.db.models import Q
from django.http import HttpRequest
from ninja import Body, Header, Query, Router, Status

from orchestration import api
from orders import mending, placing, watching
from orders.cart import Priced, PricedLine
from orders.forms import CheckoutForm
from orders.message import Message, fingerprint
from orders.models import Order, Placement, Product
from orders.scopes import READ_ORDERS, WRITE_ORDERS

from . import shapes, shown
from .access import Token, caller, check_priority
from .problems import Problem, Wrong, conflict, invalid, not_found, only

router = Router(tags=["Orders"])

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CURSOR = "^([0-9]{1,16}-[0-9a-f]{32})?$"  # of the last order on a page: when in µs, and its id
# with every order, so they are plain SQL: building the queries took longer than running them
PLACEMENT = 'SELECT * FROM orders_placement WHERE "order" = %s AND application = %s'
PRODUCTS = "SELECT * FROM orders_product WHERE sku = ANY(%s) AND active"
SOON = 1  # seconds, normally more than enough for an order to be taken up
Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="New for each order, and the same when you send it again: then it is the same "
        "order, and the same answer. It does not expire.",
        examples=["2b1c9f0e-5d6c-4a53-8d8e-1f0c8a7a3f11"],
    ),
]


@router.post(
    "",
    auth=Token(WRITE_ORDERS),
    summary="Place an order",
    operation_id="placeOrder",
    response={202: shapes.Placed},
)
def place(request: HttpRequest, order: shapes.NewOrder, idempotency_key: Key) -> Status[Any]:
    """Place an order at today's prices.

    Accepted means kept: it will be completed, or undone, and your application is told which. The
    same key with the same content gives the same answer, however often and from wherever it is
    sent; with other content it is refused.
    """
    who = caller(request)
    order_id = uuid5(who.id, idempotency_key)
    content = fingerprint(order.model_dump(mode="json", exclude={"fairness_key", "priority"}))
    before = _placement(order_id, who.name)
    if before is None:
        check_priority(order.priority, who)
        message, offer = _agree(order, order_id)
        try:
            before = placing.place(
                message,
                content,
                application=who.name,
                offer=offer,
                # of the application's own keys: it cannot join another's line
                fairness_key=order.fairness_key and f"{who.name}/{order.fairness_key}",
                priority=order.priority,
            )
        except placing.OtherContent:
            raise _key_used() from None
    elif before.fingerprint != content:
        raise _key_used()
    return Status(202, shown.placed(request, before))


@router.get(
    "",
    auth=Token(READ_ORDERS),
    summary="List your orders",
    operation_id="listOrders",
    response=shapes.Orders,
)
def list_orders(
    request: HttpRequest,
    limit: Annotated[int, Query(ge=1, le=200, description="Orders on a page.")] = 50,
    cursor: Annotated[
        str, Query(pattern=CURSOR, description="From `next`; it means nothing by itself.")
    ] = "",
) -> Mapping[str, Any]:
    """List the orders that your application has placed, newest first, page by page.

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
        "orders": [shown.summary(request, row, taken.get(row.order)) for row in page],
        "next": f"{here}?{following}" if more else None,
    }


@router.get(
    "/{uuid:order_id}",
    auth=Token(READ_ORDERS),
    summary="Read an order",
    operation_id="readOrder",
    response=shapes.Order,
    url_name="order",
)
def read(request: HttpRequest, order_id: UUID) -> Mapping[str, Any]:
    """Read an order and how it goes. For many orders, fetch status messages instead of reading each."""
    return shown.full(request, _own(request, order_id))


@router.post(
    "/{uuid:order_id}/cancel",
    auth=Token(WRITE_ORDERS),
    summary="Cancel an order",
    operation_id="cancelOrder",
    response={202: shapes.Order},
)
def cancel(
    request: HttpRequest,
    order_id: UUID,
    why: Annotated[shapes.Cancellation | None, Body()] = None,
) -> Status[Any]:
    """Have everything undone that was done for an order: nothing stays charged or set aside.

    Accepted means asked: `cancellation` says so until the order is `undoing`, or the request came too
    late after all (`refused`). A status message tells the end. To cancel again changes nothing.
    """
    placement = _own(request, order_id)
    if watching.progress(order_id) is None:
        problem = conflict("not_taken_yet", "The order has not been taken up yet.")
        problem.headers = {"Retry-After": str(SOON)}
        raise problem
    reason = (why.reason if why else "") or "its application asked for it"
    actor = f"application {caller(request).name}"
    refusal = mending.cancel(order_id, actor=actor, reason=reason)
    # it is being cancelled, was, or that is asked already
    if refusal not in {None, api.Refusal.NOT_UNDOABLE}:
        raise conflict("cannot_be_cancelled", f"It cannot be cancelled: {refusal.value}.")
    return Status(202, shown.full(request, placement))


def _agree(order: shapes.NewOrder, order_id: UUID) -> tuple[Message, dict[str, Any]]:
    """Return what the order is at today's prices, checked as the checkout checks it."""
    details = {
        **order.address.model_dump(),
        "email": order.email,
        "payment_method": order.payment_method,
    }
    form = CheckoutForm(details)
    if not form.is_valid():
        raise invalid([_wrong(name, errors) for name, errors in form.errors.items()])
    priced = _price(order)
    if order.expected_total not in {None, priced.total}:
        raise conflict(
            "price_changed",
            f"It costs {priced.total}, not {order.expected_total}. Nothing was ordered.",
            total=priced.total,
            lines=[_line(line) for line in priced.lines],
        )
    address = form.address()
    currency = priced.lines[0].product.currency
    message = Message(
        order=order_id,
        email=form.cleaned_data["email"],
        address=address,
        payment_method=form.cleaned_data["payment_method"],
        currency=currency,
        total=priced.total,
        lines=[line.as_line() for line in priced.lines],
        confirmation=placing.confirmation(
            order_id, address.name, priced.total, currency, order.language
        ),
        language=order.language,
    )
    offer = {
        "total": priced.total,
        "currency": currency,
        "lines": [_line(line) for line in priced.lines],
    }
    return message, offer


def _price(order: shapes.NewOrder) -> Priced:
    """Look the products up; raise the problem where one is not sold, or named twice."""
    names = [line.sku for line in order.lines]
    if twice := [number for number, name in enumerate(names) if name in names[:number]]:
        raise invalid([_wrong(f"lines.{n}.sku", ["Each product goes on one line."]) for n in twice])
    products = {one.sku: one for one in Product.objects.raw(PRODUCTS, [names])}
    if gone := [number for number, name in enumerate(names) if name not in products]:
        errors = [_wrong(f"lines.{n}.sku", [f"We do not sell {names[n]!r}."]) for n in gone]
        raise conflict("not_sold", errors[0].message, errors=[vars(one) for one in errors])
    return Priced(tuple(PricedLine(products[line.sku], line.quantity) for line in order.lines))


def _wrong(name: str, errors: Any) -> Wrong:
    inside = "address." if name in shapes.Address.model_fields else ""
    return Wrong(field=f"{inside}{name}", message=" ".join(map(str, errors)))


def _line(line: PricedLine) -> dict[str, Any]:
    product = line.product
    return {"sku": product.sku, "name": product.name, "quantity": line.quantity,
            "unit_price": product.price, "price": line.price}  # fmt: skip


def _key_used() -> Problem:
    return Problem(
        status=HTTPStatus.UNPROCESSABLE_ENTITY,
        code="key_used",
        detail="This Idempotency-Key was used for an order with other content.",
    )


def _placement(order: UUID, application: str) -> Placement | None:
    return next(iter(Placement.objects.raw(PLACEMENT, [order, application])), None)


def _own(request: HttpRequest, order: UUID) -> Placement:
    """Return what the caller placed; nobody else's order is there."""
    found = _placement(order, caller(request).name)
    if found is None:
        raise not_found("There is no such order.")
    return found


def _cursor(row: Placement) -> str:
    return f"{(row.created_at - EPOCH) // timedelta(microseconds=1)}-{row.order.hex}"


def _read_cursor(cursor: str) -> tuple[datetime, UUID]:
    at, _, order = cursor.partition("-")
    return EPOCH + timedelta(microseconds=int(at)), UUID(order)
