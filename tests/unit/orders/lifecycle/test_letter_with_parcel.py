"""The tracking number in a letter stands in the shop's own sentence, with any name of a customer."""

import asyncio
from uuid import uuid4

import pytest

from orchestration.api import Call
from orders.agents.notification import Notification
from orders.lifecycle import emails
from tests.support.shop import message

NAME = "{parcel} & Söhne"


@pytest.fixture
def sent(monkeypatch):
    """Return a function that has the agent send a letter, and returns what it posts."""
    agent, bodies = Notification(), []

    async def post(_call, _path, *, body=None, **_):
        bodies.append(body)
        return {"id": "m_1"}

    monkeypatch.setattr(agent, "post", post)

    def send(mail, **more):
        payload = {"to": "a@b.example", "mail": mail.as_json(), **more}
        call = Call(action="send", key="k", reference="r", payload=payload, timeout=1.0)
        asyncio.run(agent.send(call))
        return bodies[-1]

    return send


def test_name_like_the_mark_stays_in_the_confirmation(sent):
    to = emails.Recipient(order=uuid4(), name=NAME, language="en")
    letter = sent(emails.confirmation(to, 1000, "EUR"), order="o", parcel="TRK1")
    assert f"Hello {NAME}," in letter["text"]
    assert "Tracking number: TRK1." in letter["text"]
    assert "Hello {parcel} &amp; Söhne," in letter["html"]
    assert "TRK1" in letter["html"]


def test_name_like_the_mark_stays_in_the_first_letter(sent):
    address = message().address
    named = type(address)(**{**vars(address), "name": NAME})
    posted = emails.received(message(address=named))
    letter = sent(emails.Mail(**posted.data["mail"]))
    assert letter["text"].count(NAME) == 2
