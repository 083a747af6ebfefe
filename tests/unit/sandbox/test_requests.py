"""Malformed requests: keys, bodies, API keys."""

import io

import pytest

from tests.support.sandbox import (
    CHARGE,
    Client,
    served,
)

INTENTS = "/v1/payment_intents"


@served
async def test_overlong_key_is_refused(client: Client) -> None:
    assert (await client.post("/bench/calls", {}, "k" * 256)).code == "idempotency_key_too_long"


@pytest.mark.parametrize("body", ["[1]", "{", "[" * 100_000])
@served
async def test_body_that_is_not_a_json_object_is_refused(client: Client, body: str) -> None:
    headers = {"Idempotency-Key": "k-1"}
    async with client.session.post("/bench/calls", data=body, headers=headers) as response:
        assert response.status == 400
        assert "JSON" in (await response.json())["error"]["message"]


@served
async def test_oversized_body_is_refused(client: Client) -> None:
    body = io.BytesIO(b"x" * 1_100_000)
    headers = {"Idempotency-Key": "k-1"}
    async with client.session.post("/bench/calls", data=body, headers=headers) as response:
        assert response.status == 413
        assert (await response.json())["error"]["message"]


@pytest.mark.parametrize(
    "authorization", ["", "Bearer ", "Bearer sk_live_1", "Basic sk_test_1", "Bearer pk_test_1"]
)
@served
async def test_request_without_a_secret_key_is_refused(client: Client, authorization: str) -> None:
    headers = {"Authorization": authorization, "Idempotency-Key": "k-1"}
    for method, path in (("POST", INTENTS), ("GET", f"{INTENTS}/pi_1")):
        async with client.session.request(method, path, headers=headers) as response:
            assert response.status == 401
            assert (await response.json())["error"]["type"] == "invalid_request_error"


@served
async def test_json_to_the_payment_partner_is_refused(client: Client) -> None:
    headers = {"Authorization": "Bearer sk_test_1", "Idempotency-Key": "k-a"}
    async with client.session.post(INTENTS, json=CHARGE, headers=headers) as response:
        assert response.status == 400
        assert "forms, not JSON" in (await response.json())["error"]["message"]
