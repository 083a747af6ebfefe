"""The validation of faults."""

from typing import Any

import pytest

from tests.support.sandbox import Client, served


@pytest.mark.parametrize(
    ("fault", "field"),
    [
        ("x", "faults[1]"),
        ({}, "faults[1].fault"),
        ({"fault": "timeouts"}, "faults[1].fault"),
        ({"fault": ["x"]}, "faults[1].fault"),
        ({"fault": "reset", "partner": "bank"}, "faults[1].partner"),
        ({"fault": "reset", "partner": "payment", "action": "reserve"}, "faults[1].action"),
        ({"fault": "reset", "action": "authorise"}, "faults[1].action"),
        ({"fault": "reset", "action": 1}, "faults[1].action"),
        ({"fault": "reset", "times": 0}, "faults[1].times"),
        ({"fault": "reset", "times": True}, "faults[1].times"),
        ({"fault": "reset", "skip": -1}, "faults[1].skip"),
        ({"fault": "reset", "key": 5}, "faults[1].key"),
        ({"fault": "reset", "order": ""}, "faults[1].order"),
        ({"fault": "reset", "probability": 1.1}, "faults[1].probability"),
        ({"fault": "reset", "seconds": 1}, "faults[1].seconds"),
        ({"fault": "slow", "seconds": "5"}, "faults[1].seconds"),
        ({"fault": "slow", "second": 5}, "faults[1].second"),
        ({"fault": "status", "status": 200}, "faults[1].status"),
        ({"fault": "reject", "status": 500}, "faults[1].status"),
        ({"fault": "reject", "code": 7}, "faults[1].code"),
        ({"fault": "too_many_requests", "retry_after": 1.5}, "faults[1].retry_after"),
    ],
)
@served
async def test_invalid_fault_is_refused_by_field(client: Client, fault: Any, field: str) -> None:
    before = (await client.faults({"fault": "down", "key": "never"})).body
    reply = await client.faults({"fault": "reset"}, fault)
    assert (reply.status, reply.body["error"]["field"]) == (400, field)
    assert field in reply.body["error"]["message"]
    assert (await client.get("/faults")) == before
    alone = await client.call("POST", "/faults", fault)
    assert alone.body["error"]["field"] == field.replace("faults[1]", "fault")


@served
async def test_misspelled_fault_gets_a_suggestion(client: Client) -> None:
    reply = await client.faults({"fault": "time_out"})
    assert "did you mean 'timeout'?" in reply.body["error"]["message"]
