"""Parts of a reservation that are freed, before its parcel is booked or after."""

import pytest

from tests.support.sandbox import Client, served

STOCK = {"mug": {"main": 9, "south": 2}, "cup": {"south": 3}}
ORDERED = [{"sku": "mug", "quantity": 2}, {"sku": "cup", "quantity": 3}]


async def reserved(client: Client) -> dict[str, str]:
    """Reserve two mugs and three cups, which are in one warehouse; return the body of requests about it."""
    await client.call("PUT", "/inventory/stock", STOCK)
    ref = await client.made("/inventory/reservations", {"order": "o-1", "lines": ORDERED})
    return {"order": "o-1", "reservation": ref}


async def freed(client: Client, body: dict[str, str], **units: int):
    """Free units; return the reply."""
    lines = [{"sku": sku, "quantity": quantity} for sku, quantity in units.items()]
    path = f"/inventory/reservations/{body['reservation']}/parts"
    return await client.post(path, {"order": "o-1", "lines": lines})


async def levels(client: Client) -> dict[str, tuple[int, ...]]:
    """Return what is on hand, reserved and shipped of each SKU, as it is after a start, too."""
    client.sandbox.ledger.load()
    known = await client.get("/inventory/stock")
    names = ("on_hand", "reserved", "shipped")
    return {sku: tuple(level[name] for name in names) for sku, level in known.items()}


SENT = [{"sku": "mug", "quantity": 2}, {"sku": "cup", "quantity": 1}]


@pytest.mark.parametrize("booked_first", [False, True])
@served
async def test_part_and_parcel_come_to_the_same_in_either_order(client, booked_first):
    body = await reserved(client)
    if not booked_first:
        assert (await freed(client, body, cup=2)).status == 201
    await client.made("/shipping/shipments", {**body, "lines": SENT})
    if booked_first:
        assert (await levels(client))["cup"] == (0, 2, 1)
        assert (await freed(client, body, cup=2)).status == 201
    assert await levels(client) == {"cup": (2, 0, 1), "mug": (9, 0, 2)}
    known = await client.get(f"/inventory/reservations/{body['reservation']}")
    assert known["status"] == "shipped"


@served
async def test_no_more_is_freed_or_sent_than_is_held(client: Client) -> None:
    body = await reserved(client)
    assert (await freed(client, body, cup=4)).code == "not_reserved"
    assert (await freed(client, body, cup=2)).status == 201
    assert (await freed(client, body, cup=1, mug=3)).code == "not_reserved"
    all_of_it = {**body, "lines": ORDERED}
    assert (await client.post("/shipping/shipments", all_of_it)).code == "not_reserved"
    assert await levels(client) == {"cup": (2, 1, 0), "mug": (9, 2, 0)}
    await client.made("/shipping/shipments", body)  # what is left
    assert (await freed(client, body, cup=1)).code == "not_reserved"
    assert await levels(client) == {"cup": (2, 0, 1), "mug": (9, 0, 2)}


@served
async def test_rest_is_released_and_a_later_part_changes_nothing(client: Client) -> None:
    body = await reserved(client)
    await freed(client, body, mug=1)
    shipment = await client.made("/shipping/shipments", {**body, "lines": SENT[1:]})
    await client.made(f"/shipping/shipments/{shipment}/cancel", {})
    release = await client.post(f"/inventory/reservations/{body['reservation']}/release", {})
    assert release.body["status"] == "released"
    assert (await freed(client, body, mug=1)).body["lines"] == []
    assert await levels(client) == {"cup": (3, 0, 0), "mug": (11, 0, 0)}


@served
async def test_part_is_not_undone_and_goods_made_to_order_are_not_looked_for(
    client: Client,
) -> None:
    body = await reserved(client)
    await freed(client, body, mug=1)
    part = (await client.entries())[-1]
    assert (await client.post("/inventory/undo", {"key": part["key"]})).code == "restocked"
    with_made = [{"sku": "vase", "quantity": 1}, {"sku": "cup", "quantity": 3}]
    await client.made("/courier/shipments", {**body, "warehouse": "south", "lines": with_made})
    assert (await levels(client))["cup"] == (0, 0, 3)
