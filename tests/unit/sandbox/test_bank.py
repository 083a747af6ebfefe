"""Payments that await their customers: the bank's page, its app, transfers, and what is reported of them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestration.agents.webhook import UnverifiedWebhook, Webhook
from tests.support.receiver import Receiver, receiving
from tests.support.sandbox import CHARGE, Client, running, served, submit

INTENTS = "/v1/payment_intents"
ASKING = {"payment_method": "pm_card_threeDSecure2Required", "return_url": "http://shop.test/o/1/"}
APP = ASKING | {"payment_method": "pm_card_sandbox_bankApp"}
SECRET = "whsec_tests"
TRANSFER = {
    "amount": "1999",
    "currency": "eur",
    "confirm": "true",
    "payment_method_data[type]": "customer_balance",
    "customer": "cus_1",
    "metadata[order]": "o-1",
}


async def asked(client: Client, **changes: str) -> dict[str, Any]:
    intent: dict[str, Any] = (await client.post(INTENTS, CHARGE | ASKING | changes)).body
    assert intent["status"] == "requires_action"
    return intent


async def effects(client: Client) -> list[str]:
    return [entry["effect"] for entry in await client.entries("partner=payment")]


async def status(client: Client, ref: str) -> str:
    return str((await client.get(f"{INTENTS}/{ref}"))["status"])


@served
async def test_bank_asks_and_the_confirmed_amount_is_held(client: Client) -> None:
    intent = await asked(client)
    ref, page = intent["id"], intent["next_action"]["redirect_to_url"]["url"]
    assert page.endswith(f"/bank/{ref}")
    shown = (await client.call("GET", f"/bank/{ref}")).raw.decode()
    assert "€19.99" in shown
    answer = await submit(client, f"/bank/{ref}", act="confirm")
    assert (answer.status, answer.headers["Location"]) == (303, ASKING["return_url"])
    assert "form-action 'self' http://shop.test;" in answer.headers["Content-Security-Policy"]
    assert (await submit(client, f"/bank/{ref}", act="refuse")).status == 409  # decided
    assert (await client.post(f"{INTENTS}/{ref}/capture")).body["status"] == "succeeded"
    assert await effects(client) == ["request", "authorize", "capture"]
    total = (await client.get("/ledger/summary?order=o-1"))["o-1"]
    assert total["authorized"] == total["captured"] == 1999


@served
async def test_refused_payment_holds_nothing_and_may_be_cancelled(client: Client) -> None:
    ref = (await asked(client))["id"]
    await submit(client, f"/bank/{ref}", act="refuse")
    intent = await client.get(f"{INTENTS}/{ref}")
    assert intent["status"] == "requires_payment_method"
    assert intent["last_payment_error"]["code"] == "payment_intent_authentication_failure"
    assert (await client.post(f"{INTENTS}/{ref}/capture")).status == 400
    assert (await client.post(f"{INTENTS}/{ref}/cancel")).status == 200
    assert await effects(client) == ["request", "refuse", "none", "close"]


@served
async def test_cancelled_payment_cannot_be_confirmed(client: Client) -> None:
    ref = (await asked(client))["id"]
    await client.post(f"{INTENTS}/{ref}/cancel")
    assert (await submit(client, f"/bank/{ref}", act="confirm")).status == 409
    assert await effects(client) == ["request", "close"]
    assert (await client.call("GET", "/bank/pi_none")).status == 404


@served
async def test_transfer_is_taken_as_it_arrives_and_refunded(client: Client) -> None:
    intent = (await client.post(INTENTS, TRANSFER)).body
    how = intent["next_action"]["display_bank_transfer_instructions"]
    assert (how["amount_remaining"], how["financial_addresses"][0]["iban"]["iban"][:4]) == (
        1999,
        "DE00",
    )
    await submit(client, f"/bank/{intent['id']}", act="confirm")
    assert await status(client, intent["id"]) == "succeeded"
    assert (await client.post("/v1/refunds", {"payment_intent": intent["id"]})).status == 200
    assert await effects(client) == ["request", "charge", "refund"]


@pytest.mark.parametrize("missing", ["customer", "payment_method_data[type]"])
@served
async def test_transfer_needs_a_customer_and_its_type(client: Client, missing: str) -> None:
    params = {name: value for name, value in TRANSFER.items() if name != missing}
    assert (await client.post(INTENTS, params)).status == 400


@served
async def test_expired_authorization_cannot_be_captured(client: Client) -> None:
    held = await client.post(
        INTENTS, CHARGE | {"payment_method": "pm_card_sandbox_authorizationExpires"}, "k-1"
    )
    assert held.body["status"] == "requires_capture"
    late = await client.post(f"{INTENTS}/{held.body['id']}/capture")
    about = late.body["error"]["payment_intent"]
    assert (late.status, about["status"], about["cancellation_reason"]) == (
        400,
        "canceled",
        "automatic",
    )
    again = await client.post(
        INTENTS, CHARGE | {"payment_method": "pm_card_sandbox_authorizationExpires"}, "k-1"
    )
    assert again.body == held.body  # a repeat gets the first answer
    assert await effects(client) == ["authorize", "cancel", "none"]


@asynccontextmanager
async def reporting(
    tmp_path: Path, fault: str = "", *answers: int
) -> AsyncIterator[tuple[Client, Receiver]]:
    """Serve a sandbox that reports to a receiver, under a fault of its webhooks."""
    with receiving() as receiver:
        receiver.answers = [*answers, 204]
        async with running(tmp_path) as client:
            client.sandbox.webhooks.address = receiver.url
            client.sandbox.webhooks.secret = SECRET
            if fault:
                await client.faults({"partner": "payment", "fault": fault})
            yield client, receiver


async def until(ready: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not ready():  # noqa: ASYNC110 - what another thread has
            await asyncio.sleep(0.01)


def genuine(body: bytes, headers: dict[str, str]) -> bool:
    try:
        Webhook(body=body, headers=headers).verify_stripe(SECRET)
    except UnverifiedWebhook:
        return False
    return True


@pytest.mark.parametrize(
    ("fault", "answers", "sent"),
    [
        ("", [], [True]),
        ("doubled", [], [True, True]),
        ("forged", [401], [False]),
        ("", [503, 503], [True, True, True]),  # again until it is taken
    ],
)
def test_what_the_customer_did_is_reported(
    tmp_path: Path, fault: str, answers: list[int], sent: list[bool]
) -> None:
    async def inside() -> None:
        async with reporting(tmp_path, fault, *answers) as (client, receiver):
            intent = (await client.post(INTENTS, CHARGE | APP)).body
            await until(lambda: len(receiver.got) == len(sent))
            assert [genuine(body, headers) for headers, body in receiver.got] == sent
            event = json.loads(receiver.got[0][1])
            assert event["type"] == "payment_intent.amount_capturable_updated"
            assert event["data"]["object"]["id"] == intent["id"]
            assert {json.loads(body)["id"] for _, body in receiver.got} == {event["id"]}

    asyncio.run(inside())


def test_lost_report_is_not_sent(tmp_path: Path) -> None:
    async def inside() -> None:
        async with reporting(tmp_path, "lost") as (client, receiver):
            ref = (await asked(client))["id"]
            await submit(client, f"/bank/{ref}", act="confirm")
            await client.faults()
            other = (await asked(client))["id"]
            await submit(client, f"/bank/{other}", act="refuse")
            await until(lambda: bool(receiver.got))
            assert [json.loads(body)["type"] for _, body in receiver.got] == [
                "payment_intent.payment_failed"
            ]
            assert await status(client, ref) == "requires_capture"

    asyncio.run(inside())


def test_next_run_reports_and_confirms_what_the_former_left(tmp_path: Path) -> None:
    async def inside() -> None:
        async with reporting(tmp_path) as (client, receiver):
            client.sandbox.webhooks.address = "http://127.0.0.1:9/"  # nothing listens there
            client.time.hold()
            waiting = (await client.post(INTENTS, CHARGE | APP)).body["id"]
            sent = (await asked(client))["id"]
            await submit(client, f"/bank/{sent}", act="refuse")
        async with reporting(tmp_path) as (client, receiver):
            client.sandbox.resume()
            await until(lambda: len(receiver.got) == 2)
            about = {json.loads(body)["data"]["object"]["id"] for _, body in receiver.got}
            assert about == {waiting, sent}
            assert await status(client, waiting) == "requires_capture"

    asyncio.run(inside())


def test_cleared_sandbox_confirms_and_reports_nothing_more(tmp_path: Path) -> None:
    async def inside() -> None:
        async with reporting(tmp_path, "", 503) as (client, receiver):
            ref = (await asked(client))["id"]
            client.time.hold()  # also before a webhook is sent again
            await client.post(INTENTS, CHARGE | APP)
            await submit(client, f"/bank/{ref}", act="refuse")
            await until(lambda: bool(receiver.got))
            await client.call("DELETE", "/ledger")
            client.time.release()
            await until(lambda: not client.sandbox.background.running)
            assert len(receiver.got) == 1
            assert await effects(client) == []

    asyncio.run(inside())
