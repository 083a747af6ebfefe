"""The sandbox's pages for people: what they say, what their forms do, and who may post."""

import time
from typing import Any
from urllib.parse import urlencode

import pytest
from aiohttp import ClientError

from sandbox.faults import KINDS, parse_fault
from sandbox.site import frame, trouble
from sandbox.site.home import SHOWN
from sandbox.traffic import BARS, Bar, Traffic
from tests.unit.test_sandbox_kit import CHARGE, MAIL, Client, Reply, served


async def submit(client: Client, path: str, headers: Any = None, **form: str) -> Reply:
    """Post a form as a browser does, without following where it sends us."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
    async with client.session.post(
        path, data=urlencode(form), headers=headers, allow_redirects=False
    ) as answer:
        return Reply(answer.status, await answer.read(), answer.headers)


async def break_it(client: Client, partner: str, name: str, times: str = "") -> Reply:
    return await submit(client, "/faults/break", partner=partner, trouble=name, times=times)


async def page(client: Client, path: str = "/") -> str:
    reply = await client.call("GET", path)
    assert reply.status == 200, reply.raw
    assert reply.headers["Content-Type"].startswith("text/html")
    return reply.raw.decode()


async def script(client: Client) -> list[dict[str, Any]]:
    faults: list[dict[str, Any]] = (await client.get("/faults"))["faults"]
    return faults


# --- breaking and healing


@pytest.mark.parametrize("name", trouble.TROUBLES)
@pytest.mark.parametrize("partner", SHOWN)
@served
async def test_a_click_breaks_one_partner(client: Client, partner: str, name: str) -> None:
    reply = await break_it(client, partner, name)
    assert (reply.status, reply.headers["Location"]) == (303, f"/#{partner}")
    (fault,) = await script(client)
    assert fault.items() >= {"partner": partner, **trouble.TROUBLES[name].fault}.items()
    assert fault["times"] is None
    shown = await page(client)
    state = trouble.WORDS[fault["fault"]][0]
    assert f"{SHOWN[partner]} is {state.lower()}. The others work." in shown
    assert f'value="{name}" aria-current="true"' in shown
    assert shown.count("aria-current=") == 2  # the navigation's, and this button


@served
async def test_a_limited_trouble_ends_by_itself(client: Client) -> None:
    await break_it(client, "payment", "unavailable", "3")
    for _ in range(3):
        assert (await client.post("/v1/payment_intents", CHARGE)).status == 503
    assert (await client.post("/v1/payment_intents", CHARGE)).status == 200
    shown = await page(client)
    assert "All partners work." in shown
    assert "used up" in shown
    assert "hit 3 times" in shown
    assert ">Faults</h2>" in shown  # not "in force": this one is not
    await break_it(client, "payment", "unavailable", "3")
    assert "Payment is failing" in await page(client)


@served
async def test_another_click_takes_the_place_of_the_first(client: Client) -> None:
    await client.faults({"fault": "status", "partner": "mail", "action": "send", "times": 2})
    await break_it(client, "mail", "down")
    await break_it(client, "mail", "slow")
    await break_it(client, "mail", "slow")
    assert [fault["fault"] for fault in await script(client)] == ["status", "latency"]


@served
async def test_the_same_click_again_changes_nothing(client: Client) -> None:
    await break_it(client, "mail", "lost")
    with pytest.raises(ClientError):
        await client.post("/mail/messages", MAIL)
    before = await script(client)
    await break_it(client, "mail", "lost")
    assert await script(client) == before


@served
async def test_heal_one_heal_all_remove(client: Client) -> None:
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
        ("/faults/break", {"partner": "bench", "trouble": "down", "times": ""}, "partner"),
        ("/faults/break", {"partner": "mail", "trouble": "fire", "times": ""}, "trouble"),
        ("/faults/break", {"partner": "mail", "trouble": "down", "times": "2"}, "times"),
        ("/faults/heal", {"partner": "nobody"}, "partner"),
        ("/faults/remove", {}, "id"),
        ("/faults/remove", {"id": "-1"}, "id"),
    ],
)
@served
async def test_a_bad_form_changes_nothing(
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
async def test_no_other_site_may_post(client: Client, path: str, headers: dict[str, str]) -> None:
    await client.faults({"fault": "slow"})
    reply = await submit(client, path, headers, partner="mail", trouble="down", times="", id="1")
    assert (reply.status, reply.code) == (403, "other_site")
    assert len(await script(client)) == 1


@served
async def test_the_own_page_may_post(client: Client) -> None:
    origin = str(client.session._base_url).rstrip("/")
    for headers in ({"Sec-Fetch-Site": "same-origin", "Origin": origin}, {"Origin": origin}):
        assert (await submit(client, "/faults/heal", headers)).status == 303


@served
async def test_reading_changes_nothing(client: Client) -> None:
    await break_it(client, "mail", "down")
    before = await client.get("/faults"), await client.get("/ledger")
    for path in ("/", "/mail/", "/sandbox.css", "/sandbox.js", "/sandbox.svg", "/?partner=mail"):
        assert (await client.call("GET", path)).status == 200
    for path in ("/faults/break", "/faults/heal", "/faults/remove"):
        assert (await client.call("GET", path)).status == 405
    assert (await client.get("/faults"), await client.get("/ledger")) == before


@pytest.mark.parametrize("path", ["/", "/mail/", "/sandbox.css", "/sandbox.js", "/mail/html?id="])
@served
async def test_headers_forbid_what_the_pages_do_not_need(client: Client, path: str) -> None:
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


def test_the_stylesheet_stays_small() -> None:
    assert len(frame.FILES["/sandbox.css"][0]) <= 6 * 1024


# --- what the page tells


@served
async def test_page_escapes_what_it_shows(client: Client) -> None:
    await client.faults({"fault": "slow", "partner": "mail", "key": "<i>", "order": "<u>"})
    await client.made("/mail/messages", MAIL | {"order": "<b>1"})
    for path in ("/", "/mail/"):
        shown = await page(client, path)
        assert not [tag for tag in ("<i>", "<u>", "<b>1") if tag in shown]
        assert "&lt;b&gt;1" in shown


@served
async def test_page_counts_what_came_and_what_it_did(client: Client) -> None:
    ref = await client.made("/v1/payment_intents", CHARGE, "k-1")
    await client.made("/v1/payment_intents", CHARGE, "k-1")
    await client.faults({"fault": "latency", "partner": "payment", "seconds": 0.01, "times": 1})
    await client.post(f"/v1/payment_intents/{ref}/capture")
    await client.post("/v1/payment_intents", CHARGE | {"payment_method": "pm_card_none"})
    assert client.sandbox.traffic["payment"].total() == Bar(requests=4, effects=2, hit=1)
    shown = await page(client)
    for field, number in (("requests", 4), ("effects", 2), ("hits", 1)):
        assert f'<dd id="payment-{field}" data-live>{number}</dd>' in shown
    assert "authorize 19.99 EUR" in shown
    assert "2&times;" in shown


def test_traffic_forgets_what_is_past(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    traffic = Traffic()
    traffic.count(requests=2, hit=1)
    now += 10
    traffic.count(requests=1)
    traffic.count(effects=1)
    assert traffic.bars()[-2:] == [Bar(2, 0, 1), Bar(1, 1, 0)]
    assert len(traffic.bars()) == BARS
    now += 290
    assert traffic.total() == Bar(1, 1, 0)
    now += 10
    assert traffic.total() == Bar()


@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_has_words(kind: str) -> None:
    fault = parse_fault({"fault": kind}, "fault", 1)
    assert trouble.what_it_does(fault)
    assert "{" not in trouble.what_it_does(fault)
    assert trouble.state_of("mail", [fault]).word == trouble.WORDS[kind][0]


@pytest.mark.parametrize(
    ("fault", "words", "state"),
    [
        ({}, "", "Down"),
        ({"action": "send"}, "only send", "Down at times"),
        (
            {"key": "k-*", "order": "o-1"},
            "only keys like k-*, only orders like o-1",
            "Down at times",
        ),
        ({"probability": 0.25}, "25% of them", "Down at times"),
        ({"skip": 1, "times": 2}, "after 1 more request, 2 left", "Down"),
    ],
)
def test_the_scope_of_a_fault_in_words(fault: dict[str, Any], words: str, state: str) -> None:
    parsed = parse_fault({"fault": "down", "partner": "mail", **fault}, "fault", 1)
    assert trouble.when_it_does(parsed) == words
    assert trouble.state_of("mail", [parsed]).word == state
    assert trouble.state_of("payment", [parsed]) == trouble.WORKS


def test_a_fault_for_all_says_more_than_one_for_some() -> None:
    some = parse_fault({"partner": "mail", "fault": "status", "order": "o-1"}, "fault", 1)
    everyone = parse_fault({"partner": "mail", "fault": "down"}, "fault", 2)
    assert trouble.state_of("mail", [some, everyone]).word == "Down"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0 s"), (59.9, "59 s"), (130, "2 min 10 s"), (3661, "1 h 1 min"), (172_900, "2 days")],
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert frame.duration(seconds) == words


# --- customers


@served
async def test_customers_come_and_go_by_a_click_where_a_program_sends_them(client: Client) -> None:
    assert "Customers" not in await page(client)  # nobody would send any
    assert (await client.post("/demand", {"placed": 0})).body == {"rate": 0.0}
    assert "No made-up customers come." in await page(client)
    reply = await submit(client, "/demand/switch", rate="5")
    assert (reply.status, reply.headers["Location"]) == (303, "/#customers")
    assert (await client.post("/demand", {"placed": 12})).body == {"rate": 5.0}
    shown = await page(client)
    assert "Made-up customers place orders: 5 a second. 12 orders placed so far." in shown
    assert 'value="5" aria-current="true"' in shown
    await submit(client, "/demand/switch", rate="0")
    assert (await client.post("/demand", {"placed": 13})).body == {"rate": 0.0}


@pytest.mark.parametrize("told", [None, {}, {"placed": -1}, {"placed": True}, {"placed": "1"}, []])
@served
async def test_whoever_asks_says_how_many_were_placed(client: Client, told: Any) -> None:
    assert (await client.post("/demand", told)).status == 400


@served
async def test_no_other_rate_and_no_other_site_switches(client: Client) -> None:
    assert (await submit(client, "/demand/switch", rate="1000")).status == 400
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert (await submit(client, "/demand/switch", foreign, rate="5")).status == 403
    assert (await client.post("/demand", {"placed": 0})).body == {"rate": 0.0}
