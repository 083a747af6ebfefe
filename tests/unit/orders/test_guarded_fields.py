"""Where goods and letters go is guarded as the money is: no person decides that alone."""

from types import SimpleNamespace

import pytest

from orchestration.agents import by_hand, payload_schemas

LETTER = {"order": "1", "to": "ada@example.org", "mail": {"subject": "Yes", "text": "It is."}}
CASES = [
    ("shipping", "book", {"order": "1", "reservation": "r", "address": {"name": "Ada"}}),
    ("notification", "send", {**LETTER, "parcel": "p"}),
    (
        "notification",
        "send",
        {"order": "1", "to": "a@b.example", "subject": "Yes", "text": "It is."},
    ),
]


@pytest.mark.parametrize(("agent", "action", "request_"), CASES)
def test_every_field_is_guarded(agent, action, request_):
    step = SimpleNamespace(agent=agent, action=action, request=request_, loads=None)
    for name in request_:
        assert payload_schemas.changed_guarded(step, {**request_, name: "other"}) == [name]


def test_shipping_by_hand_counts_as_money():
    step = SimpleNamespace(agent="shipping", action="book", request={}, charges=None)
    assert by_hand.concerns_money(step)
