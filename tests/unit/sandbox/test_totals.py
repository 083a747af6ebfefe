"""The totals per order."""

from sandbox.partner import Call
from tests.support.sandbox import CHARGE, MAIL, Client, served


@served
async def test_summary_adds_up_per_order(client: Client) -> None:
    await client.stocked()
    ref = await client.reserved()
    await client.made("/shipping/shipments", {"order": "o-1", "reservation": ref})
    await client.made("/mail/messages", MAIL)
    intent = await client.made("/v1/payment_intents", CHARGE)
    await client.made(f"/v1/payment_intents/{intent}/cancel")
    await client.post(
        "/v1/payment_intents", CHARGE | {"payment_method": "pm_card_visa_chargeDeclined"}
    )
    for number in range(600):
        call = Call("bench", "call", f"k-{number}", f"x-{number}", None, {}, "")
        client.sandbox.ledger.perform(call)
    summary = await client.get("/ledger/summary")
    assert len(summary) == 601
    assert summary["o-1"] == {
        "currency": "eur",
        "authorized": 1999,
        "captured": 0,
        "cancelled": 1999,
        "refunded": 0,
        "reservations": 1,
        "releases": 0,
        "parts_released": 0,
        "shipments": 1,
        "shipments_cancelled": 0,
        "labels": 0,
        "labels_void": 0,
        "mails": 1,
        "mails_recalled": 0,
        "calls": 0,
        "calls_voided": 0,
        "rejected": 1,
    }
    assert (await client.get("/ledger/summary?order=none"))["none"]["mails"] == 0
