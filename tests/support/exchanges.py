"""Goods that are sent back for others: asked for, arrived and inspected."""

from uuid import uuid4

from orders.lifecycle import returns
from orders.models import Exchange, Order, Refund
from orders.shop.exchange_wish import wish


def by_sku(units):
    return {sku.replace("_", "-"): count for sku, count in units.items()}


def ask(order, units, wished):
    """Ask for an exchange of units, given as sku_0=1."""
    of = Order.objects.get(id=order)
    return returns.ask(
        of.id, by_sku(units), "damaged", id_=uuid4(), wish=wish(by_sku(wished), of.country)
    )


def inspected(run, row, percent=100, note=""):
    """Have the parcel of a return arrive and staff decide."""
    run.go()
    run.wait(2)
    returns.arrived(row.id, by="wim")
    run.go()
    seen = {"percent": percent, "restock": False, "note": note}
    run.complete(run.task("return_order", str(row.id)), "inspect_goods", seen, actor="rita")
    run.go()
    row.refresh_from_db()
    return row


def exchanged(run, order, units, wished):
    """Return a return whose replacement is placed, and the replacement."""
    row = inspected(run, ask(order, units, wished))
    assert row.state == "replaced"
    return row, Order.objects.get(id=row.replacement)


def stands(payer):
    """Return what was taken for an order, is paid back and stands for other goods."""
    paid = sum(Refund.objects.exclude(state="undone").values_list("amount", flat=True))
    held = sum(exchange.left for exchange in Exchange.objects.filter(payer=payer))
    return Order.objects.get(id=payer).total, paid, held
