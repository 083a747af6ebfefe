"""What customers of the demo do after they ordered: send something back, exchange it, move, want less."""

from dataclasses import replace
from uuid import UUID, uuid4

from orchestration import api
from orders.lifecycle import queries, readdressing, removing, returns
from orders.lifecycle.paying import payment_due
from orders.models import Return
from orders.shop.exchange_wish import wish

NOTE = "The lid is missing."


def send_back(order: UUID, _progress: api.Progress) -> Return | None:
    """Ask for the return of one unit as the customer."""
    details = queries.details(order)
    if details is None:
        return None
    return returns.ask(order, {details.lines[0].sku: 1}, "not_liked", id_=uuid4())


def send_back_and_be_paid(order: UUID, progress: api.Progress) -> object:
    """Ask for a return; the parcel arrives, and staff pay half of it back."""
    row = send_back(order, progress)
    if row is not None:
        inspect(row, percent=50, note=NOTE)
    return row


def exchange(order: UUID, _progress: api.Progress) -> object:
    """Ask for one unit again, as it is damaged; the parcel arrives, and staff have it sent."""
    details = queries.details(order)
    if details is None:
        return None
    unit = {details.lines[0].sku: 1}
    same = wish(unit, details.address.country)
    row = returns.ask(order, unit, "damaged", id_=uuid4(), wish=same)
    inspect(row, percent=100, note="")
    return row


def inspect(row: Return, *, percent: int, note: str) -> None:
    """Have a parcel arrive, and decide about it as staff."""
    returns.arrived(row.id, by="demo")
    seen = {"percent": percent, "restock": True, "note": note}
    task = api.TaskHandle(returns.RETURN_WORKFLOW, str(row.id))
    task.complete(returns.INSPECT, result=seen, actor="demo", id=uuid4())


def remove_one(order: UUID, _progress: api.Progress) -> object:
    """Remove a unit of what there is most of, as the customer."""
    details = queries.details(order)
    units = removing.removable(details) if details else {}
    if not units:
        return None
    most = max(units, key=lambda sku: units[sku])
    return removing.remove(order, {most: 1}, id_=uuid4())


def asked_by_the_bank(progress: api.Progress) -> bool:
    """Return whether an order waits for its customer at the bank."""
    return payment_due(progress) is not None


def set_aside(progress: api.Progress) -> bool:
    """Return whether something can be removed from an order."""
    return removing.is_open(progress)


def move(order: UUID, _progress: api.Progress) -> object:
    """Have the order sent to another street of the town."""
    details = queries.details(order)
    if details is None:
        return None
    return readdressing.readdress(order, replace(details.address, street="Mill Lane 7"))
