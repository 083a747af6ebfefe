"""Payments that await their customers: confirmed, refused, abandoned, transferred, expired, risky."""

import json
import time

import pytest

from orchestration.agents.webhook import UnverifiedWebhook, Webhook
from orders.agents.error_codes import CANCELED, EXPIRED
from orders.agents.payment import Payment
from sandbox.webhooks import signature
from tests.support.partner_calls import CHARGE, Shop
from tests.support.sandbox import served, submit

PAGE = "https://shop.test/orders/o-1/"
ASKED = {**CHARGE, "payment_method": "pm_card_threeDSecure2Required", "page": PAGE}
TRANSFER = {**CHARGE, "payment_method": "customer_balance", "page": PAGE}
EXPIRING = {**CHARGE, "payment_method": "pm_card_sandbox_authorizationExpires", "page": PAGE}


async def accepted(shop, payload, key="k-p"):
    reply = await shop.do("payment", "authorize", payload, key=key)
    assert reply.outcome == "later", reply
    return reply


async def looked(shop, payload, reply, key="k-p"):
    return await shop.do(
        "payment", "authorize", payload, key=key, mode="look", accepted=reply.result
    )


@served
async def test_bank_asks_the_customer_and_the_confirmed_amount_is_captured(client):
    shop = Shop(client)
    reply = await accepted(shop, ASKED)
    ref, page = reply.result["id"], reply.result["page"]
    assert (reply.wait.id, page.rpartition("/")[2]) == (ref, ref)
    assert (await looked(shop, ASKED, reply)).outcome == "later"
    answer = await submit(client, f"/bank/{ref}", act="confirm")
    assert answer.headers["Location"] == PAGE
    confirmed = await looked(shop, ASKED, reply)
    assert confirmed.result == {"id": ref, "status": "requires_capture", "risk": 12}
    await shop.done("payment", "capture", {"payment": ref, "amount": 1900})
    assert (await shop.totals())["captured"] == 1900


@pytest.mark.parametrize(
    ("act", "code"), [("refuse", "payment_intent_authentication_failure"), ("", CANCELED)]
)
@served
async def test_payment_that_its_customer_refuses_is_refused_and_voided(client, act, code):
    shop = Shop(client)
    reply = await accepted(shop, ASKED)
    ref = reply.result["id"]
    if act:
        await submit(client, f"/bank/{ref}", act=act)
    else:
        await client.post(f"/v1/payment_intents/{ref}/cancel")
    refused = await looked(shop, ASKED, reply)
    assert (refused.outcome, refused.code, refused.in_doubt) == ("rejected", code, False)
    voided = await shop.done("payment", "void", {"payment": ref})
    assert voided == {"id": ref, "status": "canceled"}
    totals = await shop.totals()
    assert (totals["authorized"], totals["captured"]) == (0, 0)


@served
async def test_request_without_a_page_to_return_to_is_declined_by_a_bank_that_asks(client):
    asked = {name: value for name, value in ASKED.items() if name != "page"}
    reply = await Shop(client).do("payment", "authorize", asked)
    assert (reply.outcome, reply.code) == ("rejected", "authentication_required")


@served
async def test_transfer_is_taken_as_it_arrives_and_given_back_once(client):
    shop = Shop(client)
    reply = await accepted(shop, TRANSFER)
    again = await accepted(shop, TRANSFER)  # an answer that was lost
    assert again.result == reply.result
    ref, transfer = reply.result["id"], reply.result["transfer"]
    assert (transfer["amount"], transfer["holder"]) == (1900, "Kettlewell")
    assert transfer["iban"].startswith("DE")
    assert transfer["reference"]
    await submit(client, f"/bank/{ref}", act="confirm")
    paid = await looked(shop, TRANSFER, reply)
    assert paid.result == {"id": ref, "status": "succeeded", "taken": True}
    for _ in range(2):
        await shop.done("payment", "void", {"payment": ref}, key="k-v")
    assert (await shop.totals())["refunded"] == 1900
    entries = await client.entries("partner=payment")
    customers = [entry for entry in entries if entry["key"] == "k-p:customer"]
    assert len(customers) == 1


@served
async def test_transfer_that_never_arrives_is_voided(client):
    shop = Shop(client)
    ref = (await accepted(shop, TRANSFER)).result["id"]
    assert (await shop.done("payment", "void", {"payment": ref}))["status"] == "canceled"
    assert (await submit(client, f"/bank/{ref}", act="confirm")).status == 409


@served
async def test_expired_authorization_is_charged_anew_once(client):
    shop = Shop(client)
    ref = (await shop.done("payment", "authorize", EXPIRING, key="k-p"))["id"]
    capture = {"payment": ref, "amount": 1500}
    first = await shop.done("payment", "capture", capture, key="k-c")
    assert first == await shop.done("payment", "capture", capture, key="k-c")
    assert first["id"] != ref
    totals = await shop.totals()
    assert totals["captured"] == 1500
    await shop.done("payment", "refund", {"payment": first["id"]})
    assert (await shop.done("payment", "void", {"payment": ref}))["status"] == "canceled"
    assert (await shop.totals())["refunded"] == 1500


@served
async def test_expired_authorization_is_charged_to_another_card(client):
    shop = Shop(client)
    ref = (await shop.done("payment", "authorize", EXPIRING, key="k-p"))["id"]
    capture = {"payment": ref, "amount": 1900, "payment_method": "pm_card_visa_chargeDeclined"}
    declined = await shop.do("payment", "capture", capture, key="k-c1")
    assert (declined.outcome, declined.code) == ("rejected", "generic_decline")
    unknown = await shop.do(
        "payment", "capture", capture | {"payment_method": "pm_used"}, key="k-c2"
    )
    assert (unknown.outcome, unknown.code) == ("rejected", EXPIRED)
    await shop.done("payment", "capture", capture | {"payment_method": "pm_card_visa"}, key="k-c3")
    assert (await shop.totals())["captured"] == 1900


@served
async def test_capture_of_what_was_voided_is_refused_and_not_charged_anew(client):
    shop = Shop(client)
    ref = await shop.authorized()
    await shop.done("payment", "void", {"payment": ref})
    reply = await shop.do("payment", "capture", {"payment": ref, "amount": 1900})
    assert (reply.outcome, reply.code) == ("rejected", "payment_intent_unexpected_state")
    assert (await shop.totals())["captured"] == 0


@pytest.mark.parametrize(("limit", "asks"), [(65, True), (75, True), (76, False)])
@served
async def test_risky_payment_is_for_a_person(client, settings, limit, asks):
    settings.RISK_ASKED_FROM = limit  # the card's score is 75
    payload = CHARGE | {"payment_method": "pm_card_riskLevelElevated", "page": PAGE}
    result = await Shop(client).done("payment", "authorize", payload)
    assert (result["risk"], result.get("review", False)) == (75, asks)


@served
async def test_payment_that_is_too_risky_is_declined(client):
    payload = CHARGE | {"payment_method": "pm_card_radarBlock", "page": PAGE}
    reply = await Shop(client).do("payment", "authorize", payload)
    assert (reply.outcome, reply.code) == ("rejected", "fraudulent")


def event(kind, **intent):
    """Return an event of the provider about an authorization."""
    shown = {"id": "pi_1", "object": "payment_intent", "capture_method": "manual", **intent}
    return {"id": "evt_1", "type": f"payment_intent.{kind}", "data": {"object": shown}}


def received(sent, secret="whsec_sandbox", at=None):
    """Return what the agent makes of an event, signed as it is sent."""
    body = json.dumps(sent)
    signed = signature(secret, at or int(time.time()), body)
    return Payment.receive(Webhook(body=body.encode(), headers={"Stripe-Signature": signed}))


REFUSAL = {"code": "card_declined", "decline_code": "stolen_card", "message": "No."}


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (
            event("amount_capturable_updated", status="requires_capture", latest_charge="ch_1"),
            {"result": {"id": "pi_1", "status": "requires_capture"}},
        ),
        (
            event("succeeded", status="succeeded", capture_method="automatic"),
            {"result": {"id": "pi_1", "status": "succeeded", "taken": True}},
        ),
        (
            event("payment_failed", status="requires_payment_method", last_payment_error=REFUSAL),
            {"refused": "stolen_card", "message": "No."},
        ),
        (event("canceled", status="canceled"), {"refused": CANCELED}),
    ],
)
def test_webhook_reports_the_end_of_a_payment(sent, expected):
    (reported,) = received(sent)
    assert (reported.id, reported.of) == ("evt_1", "pi_1")
    assert {name: getattr(reported, name) for name in expected} == expected


@pytest.mark.parametrize(
    "sent",
    [
        event("succeeded", status="succeeded"),  # what the shop captured by a call
        event("created", status="requires_action"),
        event("amount_capturable_updated", status="requires_action"),
    ],
)
def test_webhook_that_ends_nothing_reports_nothing(sent):
    assert received(sent) == []


def test_webhook_of_another_secret_or_of_long_ago_is_refused(settings):
    canceled = event("canceled", status="canceled")
    with pytest.raises(UnverifiedWebhook):
        received(canceled, "whsec_other")
    with pytest.raises(UnverifiedWebhook):
        received(canceled, at=1_700_000_000)
    settings.PAYMENT_WEBHOOK_SECRETS = ["whsec_new", "whsec_sandbox"]
    assert received(canceled)
