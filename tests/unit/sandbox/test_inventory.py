"""Stock and reservations, and the shipments that move them."""

import asyncio

import pytest

from tests.support.sandbox import (
    Client,
    served,
)


@served
async def test_stock_moves_with_reservation_and_shipment(client: Client) -> None:
    await client.stocked(10)
    reservation = await client.reserved(quantity=3)
    assert await client.stock() == {"start": 10, "on_hand": 7, "reserved": 3, "shipped": 0}
    body = {"order": "o-1", "reservation": reservation, "address": {"city": "Ulm"}}
    booked = await client.post("/shipping/shipments", body)
    assert (booked.status, booked.body["status"]) == (201, "booked")
    assert booked.body["tracking"]
    assert await client.stock() == {"start": 10, "on_hand": 7, "reserved": 0, "shipped": 3}
    release = f"/inventory/reservations/{reservation}/release"
    assert (await client.post(release, {}, "r-1")).code == "reservation_shipped"
    shipment = booked.body["id"]
    assert (await client.get(f"/shipping/shipments/{shipment}"))["status"] == "booked"
    await client.made(f"/shipping/shipments/{shipment}/cancel", {})
    assert await client.stock() == {"start": 10, "on_hand": 7, "reserved": 3, "shipped": 0}
    assert (await client.post(release, {}, "r-1")).body["status"] == "released"
    assert (await client.post(release, {}, "r-2")).body["status"] == "released"
    assert await client.stock() == {"start": 10, "on_hand": 10, "reserved": 0, "shipped": 0}
    assert (await client.get(f"/inventory/reservations/{reservation}"))["status"] == "released"
    assert (await client.post("/shipping/shipments", body)).code == "reservation_released"


@served
async def test_stock_on_hand_set_again(client: Client) -> None:
    await client.stocked(10)
    await client.reserved(quantity=4)
    await client.stocked(20)
    await client.stocked(20)
    assert await client.stock() == {"start": 24, "on_hand": 20, "reserved": 4, "shipped": 0}
    assert [entry.get("stock") for entry in await client.entries()] == [
        {"mug": {"main": 10}},
        None,
        {"mug": {"main": 20}},
    ]
    bad = await client.call("PUT", "/inventory/stock", {"mug": -1})
    assert (bad.status, bad.body["error"]["field"]) == (400, "mug")


SPLIT = {"mug": {"main": 5, "south": 1, "east": 9}, "cup": {"south": 2}, "pot": {"east": 1}}


@pytest.mark.parametrize(
    ("ordered", "reserved"),
    [
        ({"mug": 5}, {("mug", 5, "main")}),
        ({"mug": 6}, {("mug", 6, "east")}),
        ({"mug": 1, "cup": 2}, {("mug", 1, "south"), ("cup", 2, "south")}),
        ({"mug": 2, "cup": 2}, {("mug", 1, "south"), ("mug", 1, "main"), ("cup", 2, "south")}),
        ({"cup": 1, "pot": 1}, {("cup", 1, "south"), ("pot", 1, "east")}),
        ({"mug": 15}, {("mug", 9, "east"), ("mug", 5, "main"), ("mug", 1, "south")}),
    ],
)
@served
async def test_goods_are_taken_from_as_few_warehouses_as_it_takes(client, ordered, reserved):
    await client.call("PUT", "/inventory/stock", SPLIT)
    lines = [{"sku": sku, "quantity": number} for sku, number in ordered.items()]
    reply = await client.post("/inventory/reservations", {"order": "o-1", "lines": lines})
    assert {tuple(line.values()) for line in reply.body["lines"]} == reserved
    client.sandbox.ledger.load()  # as at a start
    levels = await client.get("/inventory/stock")
    for sku, quantity, warehouse in reserved:
        assert levels[sku]["warehouses"][warehouse] == SPLIT[sku][warehouse] - quantity
    undone = await client.post("/inventory/undo", {"key": (await client.entries())[-1]["key"]})
    assert undone.status == 200
    for sku, level in (await client.get("/inventory/stock")).items():
        assert {name: left for name, left in level["warehouses"].items() if left} == SPLIT[sku]


@served
async def test_each_warehouse_sends_its_own_parcel(client: Client) -> None:
    await client.call("PUT", "/inventory/stock", SPLIT)
    lines = [{"sku": "cup", "quantity": 2}, {"sku": "pot", "quantity": 1}]
    reserved = await client.made("/inventory/reservations", {"order": "o-1", "lines": lines})
    body = {"order": "o-1", "reservation": reserved}
    south = await client.made("/shipping/shipments", {**body, "warehouse": "south"})
    east = await client.post("/courier/shipments", {**body, "warehouse": "east"})
    assert east.body["tracking"].startswith("EXP")
    again = await client.post("/courier/shipments", {**body, "warehouse": "south"})
    assert again.code == "reservation_shipped"
    assert (await client.post("/shipping/shipments", body)).code == "reservation_shipped"
    nowhere = await client.post("/shipping/shipments", {**body, "warehouse": "north"})
    assert nowhere.code == "unknown_warehouse"
    client.sandbox.ledger.load()  # as at a start
    await client.made(f"/shipping/shipments/{south}/cancel", {})
    release = f"/inventory/reservations/{reserved}/release"
    assert (await client.post(release, {})).code == "reservation_shipped"
    await client.made(f"/courier/shipments/{east.body['id']}/cancel", {})
    assert (await client.post(release, {})).body["status"] == "released"
    assert (await client.get("/ledger/summary?order=o-1"))["o-1"]["shipments"] == 2


@served
async def test_carrier_does_not_go_everywhere_and_the_courier_does(client: Client) -> None:
    await client.stocked()
    body = {"order": "o-1", "reservation": await client.reserved(), "address": {"country": "PT"}}
    assert (await client.post("/shipping/shipments", body)).code == "not_served"
    await client.made("/courier/shipments", body)


@served
async def test_lines_of_one_sku_add_up(client: Client) -> None:
    await client.stocked(10)
    lines = [{"sku": "mug", "quantity": 6}, {"sku": "mug", "quantity": 6}]
    reply = await client.post("/inventory/reservations", {"order": "o-1", "lines": lines})
    assert (reply.code, reply.body["error"]["sku"]) == ("out_of_stock", "mug")


@served
async def test_stock_is_conserved_under_concurrency(client: Client) -> None:
    await client.stocked(20)
    client.sandbox.script.latency |= {"inventory": 0.005, "shipping": 0.003}

    async def order(number: int) -> int:
        lines = [{"sku": "mug", "quantity": 1 + number % 3}]
        body = {"order": f"o-{number}", "lines": lines}
        reply = await client.post("/inventory/reservations", body, f"r-{number}")
        if reply.status != 201:
            return reply.status
        ref = reply.body["id"]
        if number % 2:
            shipping = {"order": f"o-{number}", "reservation": ref}
            await client.made("/shipping/shipments", shipping, f"s-{number}")
        if number % 5 == 0:
            assert (await client.post("/inventory/undo", {"key": f"r-{number}"})).status in (
                200,
                409,
            )
        return reply.status

    statuses = await asyncio.gather(*(order(number) for number in range(60)))
    assert set(statuses) == {201, 409}
    stock = await client.stock()
    assert stock["start"] == 20 == stock["on_hand"] + stock["reserved"] + stock["shipped"]
    assert min(stock.values()) >= 0


@served
async def test_unknown_id_is_refused(client: Client) -> None:
    body = {"order": "o-1", "reservation": "rsv_none"}
    assert (await client.post("/shipping/shipments", body)).status == 422
    for path in ("/inventory/reservations/x/release", "/shipping/shipments/x/cancel"):
        assert (await client.post(path, {})).status == 404
    for path in ("/inventory/reservations/x", "/shipping/shipments/x", "/v1/payment_intents/x"):
        assert (await client.call("GET", path)).status == 404
