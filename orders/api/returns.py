"""Ask for and read returns of an application's orders."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Literal
from uuid import UUID, uuid5

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from orders.lifecycle import returns
from orders.lifecycle.exchange_offers import NotExchangeable, TooDear
from orders.lifecycle.message import MAX_LINES
from orders.models import Order, Placement, Return
from orders.models.returned import Reason
from orders.shop.exchange_wish import NotOffered, wish

from . import pricing
from .auth import Token, caller
from .orders import Key
from .problems import Problem, conflict, not_found, only
from .schema_fields import Amount, choice
from .schemas import Line, NewLine, Strict
from .scopes import READ_ORDERS, WRITE_ORDERS

router = Router(tags=["Returns"])
OTHER_RETURN = "This Idempotency-Key was used for another return of this order."
WISH = "What the customer wants for it, each product once. Empty: money."


class NewReturn(Strict):
    """Units of a completed order that its customer sends back."""

    order: Annotated[UUID, Field(description="The order's id.")]
    lines: Annotated[
        list[NewLine], Field(min_length=1, max_length=MAX_LINES, description="Each product once.")
    ]
    reason: Annotated[str, choice(Reason.values, "Why it is sent back.", "damaged")]
    exchange_for: Annotated[list[NewLine], Field(max_length=MAX_LINES, description=WISH)] = []


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
        Literal["asked", "awaited", "arrived", "refunded", "replaced", "refused", "lapsed"],
        Field(
            description="`awaited`: the label is sent; `replaced`: other goods are sent; `lapsed`: no parcel "
            "came."
        ),
    ]
    label: Annotated[str, Field(description="The label's number, once it is made.")]
    amount: Annotated[int, Field(description="What these units cost.", examples=[1900])]
    paid: Amount
    exchange_for: Annotated[list[Line], Field(description="What is wished for, at its price.")] = []
    replacement: Annotated[
        UUID | None, Field(description="The order that is sent for it, once it is placed.")
    ] = None
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

    After the parcel has arrived, staff look at it and pay back what they decide, or what is wished for is
    sent as an order of its own. The same key for the same order returns the same return; with other
    content the request is refused.
    """
    order = own_order(request, new.order)
    pricing.check_each_once(new.lines)
    pricing.check_each_once(new.exchange_for, "exchange_for")
    id_ = uuid5(order.id, idempotency_key)
    known = Return.objects.select_related("exchange").filter(id=id_, order=order).first()
    row = known or _ask(order, new, id_)
    if _content(row) != (_units(new.lines), new.reason, _units(new.exchange_for)):
        raise Problem(status=HTTPStatus.UNPROCESSABLE_ENTITY, code="key_used", detail=OTHER_RETURN)
    return Status(202, _as_json(row))


def _ask(order: Order, new: NewReturn, id_: UUID) -> Return:
    """Ask for a return; raise `Problem` if it cannot be."""
    units, wished = _units(new.lines), _units(new.exchange_for)
    try:
        instead = wish(wished, order.country) if wished else None
        return returns.ask(order.id, units, new.reason, id_=id_, wish=instead)
    except returns.TooMany as refusal:
        detail = "More units than are left of the order. Nothing was changed."
        raise conflict("too_many_units", detail, left=dict(refusal.left)) from None
    except returns.NotReturnable:
        raise conflict("not_returnable", "Nothing of this order can be sent back.") from None
    except NotExchangeable:
        raise conflict("not_exchangeable", "Gift cards are not exchanged.") from None
    except NotOffered as refusal:
        number = list(wished).index(refusal.sku)
        message = f"The product {refusal.sku!r} cannot be had now."
        error = pricing.field_error(f"exchange_for.{number}.sku", [message])
        raise conflict("not_sold", message, errors=[vars(error)]) from None
    except TooDear as refusal:
        detail = "The wish costs more than what comes back. Nothing was changed."
        raise conflict("too_dear", detail, worth=refusal.left) from None


def _units(lines: Sequence[NewLine]) -> dict[str, int]:
    return {line.sku: line.quantity for line in lines}


def _content(row: Return) -> tuple[dict[str, int], str, dict[str, int]]:
    """Return what was asked for, as requests have it."""
    came, wished = row.lines, (row.exchange_for or {"lines": []})["lines"]
    units, wishes = ({line["sku"]: line["quantity"] for line in of} for of in (came, wished))
    return units, row.reason, wishes


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
    rows = Return.objects.select_related("exchange").filter(order=own_order(request, order))
    return {"returns": [_as_json(row) for row in rows]}


def own_order(request: HttpRequest, order: UUID) -> Order:
    """Return an order of the caller that has a row; another's is not found."""
    mine = Placement.objects.filter(order=order, application=caller(request).name)
    row = Order.objects.filter(id=order).first() if mine.exists() else None
    if row is None:
        raise not_found("Unknown order.")
    return row


def _as_json(row: Return) -> dict[str, Any]:
    wished = row.exchange_for["lines"] if row.exchange_for else []
    return {
        "id": row.id,
        "order": row.order_id,
        "lines": row.lines,
        "reason": row.reason,
        "state": row.state,
        "label": row.label,
        "amount": row.amount,
        "paid": row.paid,
        "exchange_for": [
            {**line, "price": line["unit_price"] * line["quantity"]} for line in wished
        ],
        "replacement": row.replacement,
        "note": row.note,
    }
