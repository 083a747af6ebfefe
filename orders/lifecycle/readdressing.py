"""Another address for an order, until its parcel is booked.

The address stays in the order's row. Its task keeps the time of the last change, which the requests that send
the address take: so the engine refuses a change that comes after one of them was sent, whichever is first.
"""

from dataclasses import asdict
from uuid import UUID, uuid4

from django.db import transaction
from django.utils import timezone

from orchestration import api
from orders.models import Order

from . import snapshots
from .loading import ADDRESS
from .message import WORKFLOW, Address
from .requests import Change, ChangeRequest

CHANGED = "address_changed"  # the field of the task
ACTOR = "customer"
UNDER_WAY = {api.TaskState.PENDING, api.TaskState.PROCESSING}


class OtherCountry(Exception):
    """Shipping and tax were agreed for one country: the order stays in it."""


@transaction.atomic
def readdress(order_id: UUID, address: Address, *, actor: str = ACTOR) -> api.Refusal | None:
    """Request another address for an order; return the refusal, or None when requested.

    Raises `OtherCountry` for an address in another country.
    """
    order = Order.objects.select_for_update(no_key=True).get(id=order_id)
    if address.country != order.country:
        raise OtherCountry
    if not may_change(order):
        return api.Refusal.CHANGED
    asked = ChangeRequest(id=uuid4(), act=Change.ADDRESS)
    api.amend(
        WORKFLOW,
        str(order.id),
        data={CHANGED: timezone.now().isoformat()},
        actor=actor,
        reason="another address",
        id=asked.id,
        note={"act": asked.act},
    )
    # with the request, and not in its note: the engine keeps no addresses
    order.asked = {**asked.as_json(), "address": asdict(address)}
    order.save(update_fields=["asked"])
    return None


def may_change(order: Order) -> bool:
    """Return whether its address may still be changed, by the last message; the engine decides."""
    pending = order.request is not None and order.request.pending
    return is_under_way(snapshots.of(order)) and not pending


def is_under_way(progress: api.Progress | None) -> bool:
    """Return whether an order is neither completed, nor stopped or turned back."""
    return progress is not None and progress.state in UNDER_WAY


def apply(order: Order, request: UUID) -> tuple[str, ...]:
    """Set the address that a request on an order's row asked for; return the fields that changed."""
    asked = order.asked or {}
    if asked.get("id") != str(request):
        raise api.Refused("the order's row has no such request")
    for name in ADDRESS:
        setattr(order, name, asked["address"][name])
    return ADDRESS
