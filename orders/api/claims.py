"""Claim lost parcels of an application's orders, and read these claims."""

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID, uuid5

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from orders.lifecycle import claims
from orders.lifecycle.plain_text import TRIMMED
from orders.models import Claim
from orders.models.claim import ClaimState

from .auth import Token
from .problems import conflict, only
from .returns import own_order
from .schema_fields import Amount, choice
from .schemas import Strict
from .scopes import READ_ORDERS, WRITE_ORDERS

router = Router(tags=["Claims"])
Tracking = Annotated[
    str,
    Field(
        min_length=1,
        max_length=60,
        pattern=TRIMMED,
        description="The tracking number.",
        examples=["TRK-000017"],
    ),
]


class NewClaim(Strict):
    """A parcel that has not arrived."""

    order: Annotated[UUID, Field(description="The order's id.")]
    parcel: Tracking


class OneClaim(Schema):
    """A claim and how it stands."""

    id: UUID
    order: UUID
    parcel: Annotated[str, Field(description="The tracking number.")]
    state: Annotated[str, choice(ClaimState.values, "How it stands.", "asked")]
    again: Annotated[str, Field(description="The tracking number of the next parcel, if any.")]
    paid: Amount
    note: Annotated[str, Field(description="What the shop wrote to the customer about it.")]


class Claims(Schema):
    """The claims of an order, oldest first."""

    claims: list[OneClaim]


@router.post(
    "",
    auth=Token(WRITE_ORDERS),
    summary="Say that a parcel has not arrived",
    operation_id="claimParcel",
    response={202: OneClaim},
)
def ask(request: HttpRequest, new: NewClaim) -> Status[Any]:
    """Have staff look for a parcel: they send its goods again, pay back, or refuse.

    A parcel has one claim: asked again, it is the same one, so that no key is needed.
    """
    order = own_order(request, new.order)
    try:
        row = claims.ask(order.id, new.parcel, id_=uuid5(order.id, f"claim/{new.parcel}"))
    except claims.NotClaimable:
        detail = "This parcel cannot be claimed now. Nothing was changed."
        raise conflict("not_claimable", detail) from None
    return Status(202, _as_json(row))


@router.get(
    "",
    auth=Token(READ_ORDERS),
    summary="List the claims of an order",
    operation_id="listClaims",
    response=Claims,
)
def list_claims(
    request: HttpRequest, order: Annotated[UUID, Query(description="The order's id.")]
) -> Mapping[str, Any]:
    """List the claims of an order, oldest first."""
    only(request, "order")
    rows = Claim.objects.filter(order=own_order(request, order))
    return {"claims": [_as_json(row) for row in rows]}


def _as_json(row: Claim) -> dict[str, Any]:
    return {
        "id": row.id,
        "order": row.order_id,
        "parcel": row.parcel,
        "state": row.state,
        "again": row.again,
        "paid": row.paid,
        "note": row.note,
    }
