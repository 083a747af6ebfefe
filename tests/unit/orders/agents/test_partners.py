"""The partners' agents with a real sandbox: do, undo and ask."""

import asyncio

import pytest
from jsonschema import Draft202012Validator

from orchestration import registry
from orders.agents.payment import Payment
from orders.lifecycle.message import WORKFLOW
from tests.support.partner_calls import ADDRESS, AGENTS, CHARGE, LINES, MAIL, Shop
from tests.support.sandbox import served


@served
async def test_release_of_a_reservation_repeated(client):
    shop = Shop(client)
    await shop.reserved()
    undo = {"key": "k-r"}
    assert await shop.done("inventory", "release", undo, key="u-r") == {"effect": "release"}
    assert await shop.done("inventory", "release", undo, key="u-r") == {"effect": "release"}
    assert await shop.done("inventory", "release", undo) == {"effect": "none"}
    stock = await client.stock()
    assert (stock["on_hand"], stock["reserved"]) == (10, 0)


@served
async def test_undo_of_an_unknown_key_refuses_the_late_request(client):
    shop = Shop(client)
    await client.stocked()
    released = await shop.done("inventory", "release", {"key": "k-r"})
    assert released == {"effect": "none"}
    late = await shop.do("inventory", "reserve", {"order": "o-1", "lines": LINES}, key="k-r")
    assert (late.outcome, late.code) == ("rejected", "already_undone")
    assert (await client.stock())["on_hand"] == 10


@pytest.mark.parametrize("agent", ["inventory", "payment"])
@served
async def test_reused_key_is_in_doubt(client, agent):
    shop = Shop(client)
    await client.stocked()
    first, other = {
        "inventory": ({"order": "o-1", "lines": LINES}, {"order": "o-2", "lines": LINES}),
        "payment": (CHARGE, {**CHARGE, "amount": 1}),
    }[agent]
    act = {"inventory": "reserve", "payment": "authorize"}[agent]
    await shop.done(agent, act, other, key="k")
    reply = await shop.do(agent, act, first, key="k", in_doubt=False)
    assert (reply.outcome, reply.in_doubt) == ("rejected", True)


@served
async def test_release_of_shipped_goods_is_refused(client):
    shop = Shop(client)
    await shop.booked()
    reply = await shop.do("inventory", "release", {"key": "k-r"}, key="u-r")
    assert (reply.outcome, reply.code) == ("rejected", "reservation_shipped")
    assert await shop.done("shipping", "cancel", {"key": "k-s"}) == {"effect": "cancel"}
    # the refusal was not permanent: the same key works
    assert await shop.done("inventory", "release", {"key": "k-r"}, key="u-r")


@served
async def test_cancel_of_a_handed_over_parcel_is_refused(client):
    shop = Shop(client)
    await shop.booked()
    await client.faults(
        {"partner": "shipping", "action": "undo", "fault": "reject", "status": 409,
         "code": "handed_over"}
    )  # fmt: skip
    reply = await shop.do("shipping", "cancel", {"key": "k-s"})
    assert (reply.outcome, reply.code) == ("rejected", "handed_over")


@served
async def test_void_of_a_captured_payment_refunds_once(client):
    shop = Shop(client)
    payment = await shop.captured()
    first = await shop.done("payment", "void", {"payment": payment}, key="u-p")
    again = await shop.done("payment", "void", {"payment": payment}, key="u-p")
    assert first == again
    assert first["status"] == "succeeded"
    assert (await shop.totals())["refunded"] == 1900


@served
async def test_void_of_a_refunded_payment_changes_nothing(client):
    shop = Shop(client)
    payment = await shop.captured()
    refund = await shop.done("payment", "refund", {"payment": payment}, key="u-c")
    assert refund["id"].startswith("re_")
    for _ in range(2):
        result = await shop.done("payment", "void", {"payment": payment}, key="u-p")
        assert result == {"id": payment, "status": "refunded"}
    totals = await shop.totals()
    assert (totals["captured"], totals["refunded"], totals["cancelled"]) == (1900, 1900, 0)


@served
async def test_refund_of_the_remaining_amount(client):
    shop = Shop(client)
    payment = await shop.captured()
    await client.made("/v1/refunds", {"payment_intent": payment, "amount": "400"}, "by-hand")
    await shop.done("payment", "refund", {"payment": payment}, key="u-c")
    await shop.done("payment", "refund", {"payment": payment}, key="u-c")
    assert (await shop.totals())["refunded"] == 1900
    done = await shop.done("payment", "refund", {"payment": payment}, key="u-again")
    assert done == {"id": payment, "status": "refunded"}


@served
async def test_refund_without_capture_is_rejected(client):
    shop = Shop(client)
    payment = await shop.authorized()
    reply = await shop.do("payment", "refund", {"payment": payment})
    assert (reply.outcome, reply.code) == ("rejected", "payment_intent_unexpected_state")


@pytest.mark.parametrize("fault", ["timeout_after_effect", "reset_after_effect", "wrong_json"])
@pytest.mark.parametrize("action", ["cancel", "refund", "read"])
def test_undo_with_a_lost_answer_is_done_once(tmp_path, action, fault):
    @served
    async def run(client):
        shop = Shop(client)
        held = action == "cancel"
        payment = await (shop.authorized() if held else shop.captured())
        await client.faults(
            {"partner": "payment", "action": action, "fault": fault, "times": 2,
             "seconds": 2} if "timeout" in fault
            else {"partner": "payment", "action": action, "fault": fault, "times": 2}
        )  # fmt: skip
        outcomes = []
        while not outcomes or (outcomes[-1] != "done" and len(outcomes) < 4):
            seconds = 0.5 if "timeout" in fault else 30
            void = {"payment": payment}
            reply = await shop.do("payment", "void", void, key="u-p", seconds=seconds)
            outcomes.append(reply.outcome)
        assert outcomes[-1] == "done"
        assert set(outcomes[:-1]) <= {"unknown"}
        totals = await shop.totals()
        assert (totals["cancelled"], totals["refunded"]) == ((1900, 0) if held else (0, 1900))

    run(tmp_path=tmp_path)


QUESTIONS = {
    # by agent: action, payload, partner
    "inventory": ("reserve", {"order": "o-1", "lines": LINES}, "inventory"),
    "notification": ("send", MAIL, "mail"),
}


@pytest.mark.parametrize("mode", ["settle", "ask"])
@pytest.mark.parametrize("agent", QUESTIONS)
@served
async def test_ask_about_a_key(client, agent, mode):
    shop = Shop(client)
    await client.stocked()
    action, payload, partner = QUESTIONS[agent]
    assert (await shop.do(agent, action, payload, key="k/1", mode=mode)).outcome == "absent"
    made = await shop.done(agent, action, payload, key="k/1")
    assert await shop.done(agent, action, payload, key="k/1", mode=mode) == made
    (entry,) = [listed for listed in await client.entries() if listed["key"] == "k/1"]
    assert (entry["requests"], entry["partner"]) == (1, partner)

    await client.faults({"partner": partner, "fault": "reject", "code": "no_way", "times": 1})
    await shop.do(agent, action, payload, key="k/2")
    refused = await shop.do(agent, action, payload, key="k/2", mode=mode)
    assert (refused.outcome, refused.code) == ("rejected", "no_way")


@served
async def test_ask_about_the_key_of_an_undo(client):
    shop = Shop(client)
    booked = await shop.booked()
    payload = {"order": "o-1", "reservation": "rsv", "address": ADDRESS}
    assert await shop.done("shipping", "book", payload, key="k-s", mode="settle") == booked
    undo = {"key": "k-s"}
    assert (await shop.do("shipping", "cancel", undo, key="u-s", mode="ask")).outcome == "absent"
    await shop.done("shipping", "cancel", undo, key="u-s")
    asked = await shop.done("shipping", "cancel", undo, key="u-s", mode="ask")
    assert asked == {"effect": "cancel"}


@served
async def test_ask_about_a_key_in_use(client):
    shop = Shop(client)
    client.sandbox.script.latency["mail"] = 0.3
    sending = asyncio.create_task(shop.do("notification", "send", MAIL, key="k-1"))
    while (await client.call("GET", "/keys/k-1")).code != "key_in_use":
        assert not sending.done()
    client.sandbox.script.latency["mail"] = 0.0
    asked = await shop.do("notification", "send", MAIL, key="k-1", mode="settle")
    assert (asked.outcome, asked.code) == ("unknown", "key_in_use")
    assert (await sending).outcome == "done"


@served
async def test_payment_in_doubt_is_repeated_while_its_key_is_known(client):
    shop = Shop(client)
    payment = await shop.authorized()
    settled = await shop.done("payment", "authorize", CHARGE, key="k-p", mode="settle")
    assert settled["id"] == payment
    forgotten = await shop.do("payment", "authorize", CHARGE, key="k-p", mode="ask")
    assert (forgotten.outcome, forgotten.code) == ("unknown", "key_forgotten")
    assert (await shop.totals())["authorized"] == 1900


@served
async def test_order_is_undone_in_reverse(client):
    shop = Shop(client)
    await shop.booked()
    payment = await shop.captured()
    await shop.done("payment", "refund", {"payment": payment})
    await shop.done("shipping", "cancel", {"key": "k-s"})
    await shop.done("payment", "void", {"payment": payment})
    await shop.done("inventory", "release", {"key": "k-r"})
    totals = await shop.totals()
    assert totals["captured"] - totals["refunded"] == 0
    assert (totals["releases"], totals["shipments_cancelled"]) == (1, 1)
    assert (await client.stock())["on_hand"] == 10


def test_action_schemas_are_valid():
    for step in (step for step in registry.workflows[WORKFLOW].steps if step.agent):
        for name in {step.action, step.undo} & AGENTS[step.agent].actions().keys():
            declared = AGENTS[step.agent].actions()[name]
            for schema in (declared.accepts, declared.returns):
                Draft202012Validator.check_schema(schema)
    problems = Draft202012Validator(Payment.actions()["authorize"].accepts).iter_errors(
        {**CHARGE, "amount": "lots", "currency": "euro"}
    )
    assert {problem.absolute_path[0] for problem in problems} == {"amount", "currency"}
