"""The demo's switch."""

from typing import Any

import pytest

from tests.support.sandbox import Client, page, served, submit


@served
async def test_switch_sets_the_rate_of_a_connected_demo(client: Client) -> None:
    assert 'id="customers"' not in await page(client)  # no demo has polled
    assert (await client.post("/demand", {"placed": 0})).body == {"rate": 0.0}
    assert 'data-rate="0" data-placed="0"' in await page(client)
    reply = await submit(client, "/demand/switch", rate="5")
    assert (reply.status, reply.headers["Location"]) == (303, "/#customers")
    assert (await client.post("/demand", {"placed": 12})).body == {"rate": 5.0}
    shown = await page(client)
    assert 'data-rate="5" data-placed="12"' in shown
    assert 'value="5" aria-current="true"' in shown
    await submit(client, "/demand/switch", rate="0")
    assert (await client.post("/demand", {"placed": 13})).body == {"rate": 0.0}


@pytest.mark.parametrize(
    "report", [None, {}, {"placed": -1}, {"placed": True}, {"placed": "1"}, []]
)
@served
async def test_poll_of_the_switch_without_a_count_is_refused(client: Client, report: Any) -> None:
    assert (await client.post("/demand", report)).status == 400


@served
async def test_switch_with_another_rate_or_from_another_site_is_refused(client: Client) -> None:
    assert (await submit(client, "/demand/switch", rate="1000")).status == 400
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert (await submit(client, "/demand/switch", foreign, rate="5")).status == 403
    assert (await client.post("/demand", {"placed": 0})).body == {"rate": 0.0}
