"""The forms of the pages, who may submit them, and the headers."""

from typing import Any

import pytest
from aiohttp import ClientError

from sandbox.site import faults
from sandbox.site.home import SHOWN
from tests.support.sandbox import CHARGE, MAIL, Client, Reply, page, served, submit, text_of


async def break_it(client: Client, partner: str, name: str, times: str = "") -> Reply:
    return await submit(client, "/faults/break", partner=partner, preset=name, times=times)


async def script(client: Client) -> list[dict[str, Any]]:
    faults: list[dict[str, Any]] = (await client.get("/faults"))["faults"]
    return faults


@pytest.mark.parametrize("name", faults.PRESETS)
@pytest.mark.parametrize("partner", SHOWN)
@served
async def test_preset_breaks_one_partner(client: Client, partner: str, name: str) -> None:
    reply = await break_it(client, partner, name)
    assert (reply.status, reply.headers["Location"]) == (303, f"/#{partner}")
    (fault,) = await script(client)
    assert fault.items() >= {"partner": partner, **faults.PRESETS[name].fault}.items()
    assert fault["times"] is None
    shown = await page(client)
    state = faults.DESCRIPTIONS[fault["fault"]][0]
    assert {partner: text_of(shown, f"{partner}-state") for partner in SHOWN} == {
        **dict.fromkeys(SHOWN, faults.WORKS.word),
        partner: state,
    }
    assert text_of(shown, "summary").startswith(f"{SHOWN[partner]} is {state.lower()}.")
    assert f'value="{name}" aria-current="true"' in shown
    assert shown.count("aria-current=") == 2  # the navigation's, and this button


@served
async def test_limited_preset_ends_after_its_requests(client: Client) -> None:
    await break_it(client, "payment", "unavailable", "3")
    for _ in range(3):
        assert (await client.post("/v1/payment_intents", CHARGE)).status == 503
    assert (await client.post("/v1/payment_intents", CHARGE)).status == 200
    shown = await page(client)
    assert text_of(shown, "payment-state") == faults.WORKS.word
    (fault,) = client.sandbox.script.faults
    assert fault.used_up
    assert text_of(shown, f"fault-{fault.ref}-when") == faults.describe_scope(fault)
    assert "3" in text_of(shown, f"fault-{fault.ref}-hit")
    await break_it(client, "payment", "unavailable", "3")
    assert text_of(await page(client), "payment-state") == faults.DESCRIPTIONS["status"][0]


@served
async def test_another_preset_replaces_the_first(client: Client) -> None:
    await client.faults({"fault": "status", "partner": "mail", "action": "send", "times": 2})
    await break_it(client, "mail", "down")
    await break_it(client, "mail", "slow")
    await break_it(client, "mail", "slow")
    assert [fault["fault"] for fault in await script(client)] == ["status", "latency"]


@served
async def test_same_preset_again_changes_nothing(client: Client) -> None:
    await break_it(client, "mail", "lost")
    with pytest.raises(ClientError):
        await client.post("/mail/messages", MAIL)
    before = await script(client)
    await break_it(client, "mail", "lost")
    assert await script(client) == before


@served
async def test_faults_are_removed_by_heal_and_remove(client: Client) -> None:
    for partner in ("payment", "mail"):
        await break_it(client, partner, "down")
    await client.call("POST", "/faults", {"fault": "slow", "partner": "mail", "action": "send"})
    await client.call("POST", "/faults", {"fault": "slow", "partner": "bench"})
    assert (await submit(client, "/faults/heal", partner="mail")).status == 303
    assert [fault["partner"] for fault in await script(client)] == ["payment", "bench"]
    ref = str((await script(client))[1]["id"])
    for _ in range(2):  # a second tab may be late
        gone = await submit(client, "/faults/remove", id=ref)
        assert (gone.status, gone.headers["Location"]) == (303, "/#faults")
    assert [fault["partner"] for fault in await script(client)] == ["payment"]
    assert (await submit(client, "/faults/heal")).status == 303
    assert await script(client) == []


@pytest.mark.parametrize(
    ("path", "form", "field"),
    [
        ("/faults/break", {"partner": "bench", "preset": "down", "times": ""}, "partner"),
        ("/faults/break", {"partner": "mail", "preset": "fire", "times": ""}, "preset"),
        ("/faults/break", {"partner": "mail", "preset": "down", "times": "2"}, "times"),
        ("/faults/heal", {"partner": "bank"}, "partner"),
        ("/faults/remove", {}, "id"),
        ("/faults/remove", {"id": "-1"}, "id"),
    ],
)
@served
async def test_invalid_form_changes_nothing(
    client: Client, path: str, form: dict[str, str], field: str
) -> None:
    reply = await submit(client, path, **form)
    assert (reply.status, reply.body["error"]["field"]) == (400, field)
    assert await script(client) == []


OTHERS: list[dict[str, str]] = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},  # the shop's own host, on another port
    {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:8000"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
]


@pytest.mark.parametrize("headers", OTHERS)
@pytest.mark.parametrize("path", ["/faults/break", "/faults/heal", "/faults/remove", "/faults"])
@served
async def test_post_from_another_site_is_refused(
    client: Client, path: str, headers: dict[str, str]
) -> None:
    await client.faults({"fault": "slow"})
    reply = await submit(client, path, headers, partner="mail", preset="down", times="", id="1")
    assert (reply.status, reply.code) == (403, "other_site")
    assert len(await script(client)) == 1


@served
async def test_post_from_the_own_page_is_accepted(client: Client) -> None:
    origin = str(client.session._base_url).rstrip("/")
    for headers in ({"Sec-Fetch-Site": "same-origin", "Origin": origin}, {"Origin": origin}):
        assert (await submit(client, "/faults/heal", headers)).status == 303


@served
async def test_get_changes_nothing(client: Client) -> None:
    await break_it(client, "mail", "down")
    before = await client.get("/faults"), await client.get("/ledger")
    for path in ("/", "/mail/", "/sandbox.css", "/sandbox.js", "/sandbox.svg", "/?partner=mail"):
        assert (await client.call("GET", path)).status == 200
    for path in ("/faults/break", "/faults/heal", "/faults/remove"):
        assert (await client.call("GET", path)).status == 405
    assert (await client.get("/faults"), await client.get("/ledger")) == before


@pytest.mark.parametrize("path", ["/", "/mail/", "/sandbox.css", "/sandbox.js", "/mail/html?id="])
@served
async def test_headers_restrict_the_pages(client: Client, path: str) -> None:
    ref = await client.made("/mail/messages", MAIL | {"html": "<p>"})
    reply = await client.call("GET", path + ref if path.endswith("=") else path)
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy or "script-src 'self'" in policy
    assert "frame-ancestors" in policy
    assert "unsafe-eval" not in policy
    assert ("unsafe-inline" in policy) == path.startswith("/mail/html")
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Referrer-Policy"] == "same-origin"
