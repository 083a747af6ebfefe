"""Ask for and read returns of an application's orders."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, Literal
from uuid import UUID, uuid5

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from orders.lifecycle import returns
from orders.lifecycle.message import MAX_LINES
from orders.models import Order, Placement, Return
from orders.models.returned import Reason

from . import pricing
from .auth import Token, caller
from .orders import Key
from .problems import Problem, conflict, not_found, only
from .schema_fields import Amount, choice
from .schemas import NewLine, Strict
from .scopes import READ_ORDERS, WRITE_ORDERS

router = Router(tags=["Returns"])
OTHER_RETURN = "This Idempotency-Key was used for another return of this order."


class NewReturn(Strict):
    """Units of a completed order that its customer sends back."""

    order: Annotated[UUID, Field(description="The order's id.")]
    lines: Annotated[
        list[NewLine], Field(min_length=1, max_length=MAX_LINES, description="Each product once.")
    ]
    reason: Annotated[str, choice(Reason.values, "Why it is sent back.", "damaged")]


class ReturnedLine(Schema):
    """A product and the units that come back."""

    sku: str
    name: str
    quantity: int


class OneReturn(Schema):
    """A return and how it stands."""

    id: UUID
    order: UUID
    lines: list[ReturnedLine]
    reason: str
    state: Annotated[
        Literal["asked", "awaited", "arrived", "refunded", "refused", "lapsed"],
        Field(description="`awaited`: the label is sent; `lapsed`: no parcel came."),
    ]
    label: Annotated[str, Field(description="The label's number, once it is made.")]
    amount: Annotated[int, Field(description="What these units cost.", examples=[1900])]
    paid: Amount
    note: Annotated[str, Field(description="What the shop wrote to the customer about it.")]


class Returns(Schema):
    """The returns of an order, oldest first."""

    returns: list[OneReturn]


@router.post(
    "",
    auth=Token(WRITE_ORDERS),
    summary="Send part of an order back",
    operation_id="askForReturn",
    response={202: OneReturn},
)
def ask(request: HttpRequest, new: NewReturn, idempotency_key: Key) -> Status[Any]:
    """Ask for a return: the customer gets a label by e-mail.

    After the parcel has arrived, staff look at it and pay back what they decide. The same key for the
    same order returns the same return; with other content the request is refused.
    """
    order = own_order(request, new.order)
    pricing.check_each_once(new.lines)
    units = {line.sku: line.quantity for line in new.lines}
    try:
        row = returns.ask(order, units, new.reason, id_=uuid5(order, idempotency_key))
    except returns.TooMany as refusal:
        detail = "More units than are left of the order. Nothing was changed."
        raise conflict("too_many_units", detail, left=dict(refusal.left)) from None
    except returns.NotReturnable:
        raise conflict("not_returnable", "Nothing of this order can be sent back.") from None
    if ({line["sku"]: line["quantity"] for line in row.lines}, row.reason) != (
        units,
        new.reason,
    ):
        raise Problem(status=HTTPStatus.UNPROCESSABLE_ENTITY, code="key_used", detail=OTHER_RETURN)
    return Status(202, _as_json(row))


@router.get(
    "",
    auth=Token(READ_ORDERS),
    summary="List the returns of an order",
    operation_id="listReturns",
    response=Returns,
)
def list_returns(
    request: HttpRequest, order: Annotated[UUID, Query(description="The order's id.")]
) -> Mapping[str, Any]:
    """List the returns of an order, oldest first."""
    only(request, "order")
    rows = Return.objects.filter(order=own_order(request, order))
    return {"returns": [_as_json(row) for row in rows]}


def own_order(request: HttpRequest, order: UUID) -> UUID:
    """Return the id of an order of the caller that has a row; another's is not found."""
    mine = Placement.objects.filter(order=order, application=caller(request).name)
    if not mine.exists() or not Order.objects.filter(id=order).exists():
        raise not_found("Unknown order.")
    return order


def _as_json(row: Return) -> dict[str, Any]:
    return {
        "id": row.id,
        "order": row.order_id,
        "lines": row.lines,
        "reason": row.reason,
        "state": row.state,
        "label": row.label,
        "amount": row.amount,
        "paid": row.paid,
        "note": row.note,
    }
