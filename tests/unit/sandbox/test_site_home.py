"""The partners' page."""

from sandbox.traffic import Bar
from tests.support.sandbox import CHARGE, MAIL, Client, page, served


@served
async def test_page_escapes_input(client: Client) -> None:
    await client.faults({"fault": "slow", "partner": "mail", "key": "<i>", "order": "<u>"})
    await client.made("/mail/messages", MAIL | {"order": "<b>1"})
    for path in ("/", "/mail/"):
        shown = await page(client, path)
        assert not [tag for tag in ("<i>", "<u>", "<b>1") if tag in shown]
        assert "&lt;b&gt;1" in shown


@served
async def test_page_counts_requests_and_effects(client: Client) -> None:
    ref = await client.made("/v1/payment_intents", CHARGE, "k-1")
    await client.made("/v1/payment_intents", CHARGE, "k-1")
    await client.faults({"fault": "latency", "partner": "payment", "seconds": 0.01, "times": 1})
    await client.post(f"/v1/payment_intents/{ref}/capture")
    await client.post("/v1/payment_intents", CHARGE | {"payment_method": "pm_card_none"})
    assert client.sandbox.traffic["payment"].total() == Bar(requests=4, effects=2, hit=1)
    shown = await page(client)
    for field, number in (("requests", 4), ("effects", 2), ("hits", 1)):
        assert f'<dd id="payment-{field}" data-live>{number}</dd>' in shown
    assert "authorize €19.99" in shown
    assert "2&times;" in shown
