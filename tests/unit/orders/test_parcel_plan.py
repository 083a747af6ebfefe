"""Which parcels an order is sent in."""

import pytest

from orders.parcels import plan

MUG, POT, CARD = (
    {"sku": sku, "quantity": 1, "name": sku, "unit_price": 100} for sku in ("mug", "pot", "card")
)


def reserved(sku, warehouse, quantity=1):
    return {"sku": sku, "quantity": quantity, "warehouse": warehouse}


def planned(*lines, by_warehouse=(), emailed=(), refused=False):
    request = {
        "reserved": [*by_warehouse], "lines": [*lines], "emailed": [*emailed], "refused": refused,
    }  # fmt: skip
    return {
        parcel["warehouse"]: [(line["sku"], line["quantity"]) for line in parcel["lines"]]
        for parcel in plan(request)["parcels"]
    }


@pytest.mark.parametrize(
    ("of", "parcels"),
    [
        ({}, {"": [("mug", 1), ("pot", 1), ("card", 1)]}),
        ({"emailed": ["card"]}, {"": [("mug", 1), ("pot", 1)]}),
        (
            {"by_warehouse": [reserved("mug", "main"), reserved("pot", "south")], "emailed": ["card"]},
            {"main": [("mug", 1)], "south": [("pot", 1)]},
        ),
        # the third is made to order
        (
            {"by_warehouse": [reserved("mug", "south"), reserved("pot", "main")]},
            {"south": [("mug", 1), ("card", 1)], "main": [("pot", 1)]},
        ),
        (
            {"by_warehouse": [reserved("mug", "main", 2), reserved("mug", "south", 1)],
             "emailed": ["pot", "card"]},
            {"main": [("mug", 2)], "south": [("mug", 1)]},
        ),
    ],
)  # fmt: skip
def test_parcels_of_an_order(of, parcels):
    assert planned(MUG, POT, CARD, **of) == parcels


@pytest.mark.parametrize("refused", [True, False])
def test_courier_takes_what_the_usual_carrier_refused(refused):
    request = {"reserved": [], "lines": [MUG], "emailed": [], "refused": refused}
    (parcel,) = plan(request)["parcels"]
    assert parcel["by_courier"] is refused
