"""The payment partner: the shapes and state rules of Stripe's REST API."""

import pytest

from tests.support.sandbox import CHARGE, Client, Reply, served

INTENTS = "/v1/payment_intents"


def error(reply: Reply) -> tuple[int, str, str]:
    return reply.status, reply.body["error"]["type"], reply.code


@served
async def test_authorize_then_capture_then_refund(client: Client) -> None:
    held = await client.post(INTENTS, CHARGE | {"metadata[cart]": "c-7"})
    assert held.status == 200
    ref = held.body["id"]
    assert ref.startswith("pi_")
    expected = {
        "object": "payment_intent",
        "status": "requires_capture",
        "amount": 1999,
        "amount_capturable": 1999,
        "amount_received": 0,
        "currency": "eur",
        "capture_method": "manual",
        "payment_method": "pm_card_visa",
        "metadata": {"order": "o-1", "cart": "c-7"},
        "livemode": False,
    }
    assert held.body.items() >= expected.items()
    taken = (await client.post(f"{INTENTS}/{ref}/capture")).body
    assert (taken["status"], taken["amount_capturable"], taken["amount_received"]) == (
        "succeeded",
        0,
        1999,
    )
    assert (await client.get(f"{INTENTS}/{ref}")) == taken
    refund = (await client.post("/v1/refunds", {"payment_intent": ref, "amount": "500"})).body
    assert refund["id"].startswith("re_")
    assert (
        refund.items()
        >= {
            "object": "refund",
            "status": "succeeded",
            "amount": 500,
            "currency": "eur",
            "payment_intent": ref,
        }.items()
    )
    rest = (await client.post("/v1/refunds", {"payment_intent": ref})).body
    assert rest["amount"] == 1499
    total = (await client.get("/ledger/summary?order=o-1"))["o-1"]
    assert total["authorized"] == total["captured"] == total["refunded"] == 1999


@served
async def test_capture_and_refund_of_a_part(client: Client) -> None:
    ref = await client.made(INTENTS, CHARGE)
    capture = f"{INTENTS}/{ref}/capture"
    assert error(await client.post(capture, {"amount_to_capture": "2000"})) == (
        400,
        "invalid_request_error",
        "amount_too_large",
    )
    assert (await client.post(capture, {"amount_to_capture": "900"})).body["amount_received"] == 900
    assert error(await client.post("/v1/refunds", {"payment_intent": ref, "amount": "901"})) == (
        400,
        "invalid_request_error",
        "amount_too_large",
    )


@pytest.mark.parametrize(
    ("method", "decline", "message"),
    [
        ("pm_card_visa_chargeDeclined", "generic_decline", "Your card was declined."),
        (
            "pm_card_visa_chargeDeclinedInsufficientFunds",
            "insufficient_funds",
            "Your card has insufficient funds.",
        ),
    ],
)
@served
async def test_declined_card(client: Client, method: str, decline: str, message: str) -> None:
    reply = await client.post(INTENTS, CHARGE | {"payment_method": method})
    assert reply.status == 402
    assert reply.body["error"] == {
        "type": "card_error",
        "code": "card_declined",
        "decline_code": decline,
        "message": message,
    }


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"amount": "0"}, "amount"),
        ({"amount": "19.99"}, "amount"),
        ({"amount": ""}, "amount"),
        ({"currency": "euro"}, "currency"),
        ({"payment_method": "pm_card_none"}, "payment_method"),
        ({"capture_method": "later"}, "capture_method"),
        ({"confirm": "false"}, "confirm"),
    ],
)
@served
async def test_invalid_parameter_is_refused_by_name(
    client: Client, changes: dict[str, str], param: str
) -> None:
    reply = await client.post(INTENTS, CHARGE | changes, "k-1")
    assert (reply.status, reply.body["error"]["param"]) == (400, param)
    assert reply.body["error"]["type"] == "invalid_request_error"
    assert (await client.post(INTENTS, CHARGE, "k-1")).status == 200


@served
async def test_intent_in_another_state_is_refused(client: Client) -> None:
    unexpected = (400, "invalid_request_error", "payment_intent_unexpected_state")
    ref = await client.made(INTENTS, CHARGE)
    assert error(await client.post("/v1/refunds", {"payment_intent": ref})) == unexpected
    await client.made(f"{INTENTS}/{ref}/cancel")
    assert error(await client.post(f"{INTENTS}/{ref}/capture")) == unexpected
    assert error(await client.post(f"{INTENTS}/{ref}/cancel")) == unexpected
    other = await client.made(INTENTS, CHARGE)
    await client.made(f"{INTENTS}/{other}/capture")
    assert error(await client.post(f"{INTENTS}/{other}/capture")) == unexpected
    assert error(await client.post(f"{INTENTS}/{other}/cancel")) == unexpected
    await client.made("/v1/refunds", {"payment_intent": other})
    assert (await client.post("/v1/refunds", {"payment_intent": other})).code == (
        "charge_already_refunded"
    )


@served
async def test_unknown_intent_is_not_found(client: Client) -> None:
    for path, body in ((f"{INTENTS}/pi_0/capture", None), ("/v1/refunds", {"amount": "1"})):
        assert error(await client.post(path, body)) == (
            404,
            "invalid_request_error",
            "resource_missing",
        )


@served
async def test_replay_shows_the_first_state(client: Client) -> None:
    first = await client.post(INTENTS, CHARGE, "k-1")
    await client.made(f"{INTENTS}/{first.body['id']}/capture")
    assert (await client.post(INTENTS, CHARGE, "k-1")).raw == first.raw


@served
async def test_undo_by_key_refunds_what_was_captured(client: Client) -> None:
    ref = await client.made(INTENTS, CHARGE, "k-a")
    await client.made(f"{INTENTS}/{ref}/capture", None, "k-c")
    await client.made("/v1/refunds", {"payment_intent": ref, "amount": "999"})
    undone = await client.post("/payment/undo", {"key": "k-c"}, "u-c")
    assert (undone.body["effect"], undone.body["amount"]) == ("refund", 1000)
    assert undone.body["id"].startswith("re_")
    assert (await client.post("/payment/undo", {"key": "k-a"}, "u-a")).body["effect"] == "none"
    capture_again = await client.post(f"{INTENTS}/{ref}/capture", None, "k-c")
    assert error(capture_again) == (409, "invalid_request_error", "already_undone")
    total = (await client.get("/ledger/summary"))["o-1"]
    assert (total["captured"], total["refunded"], total["cancelled"]) == (1999, 1999, 0)


@served
async def test_undo_by_key_accepts_a_form(client: Client) -> None:
    await client.made(INTENTS, CHARGE, "k-a")
    headers = {"Authorization": "Bearer sk_test_1", "Idempotency-Key": "u-a"}
    async with client.session.post("/payment/undo", data="key=k-a", headers=headers) as response:
        assert (await response.json())["effect"] == "cancel"
