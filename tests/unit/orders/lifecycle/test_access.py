"""What a signed link to an order proves."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.signing import Signer
from django.test import RequestFactory

from orders.lifecycle import access

FORMER = "the key before this one"


@pytest.fixture
def sees(monkeypatch):
    """Call it for whether a link with a signature shows an order, though a key was replaced."""
    signer = Signer(salt=access.SALT, fallback_keys=[FORMER])
    monkeypatch.setattr(access, "_links", lambda: signer)

    def look(order, signature):
        request = RequestFactory().get("/", {"t": signature})
        request.session, request.user = {}, AnonymousUser()
        return access.may_see(request, order, None)

    return look


def test_link_in_a_letter_outlives_its_key(sees):
    order, other = uuid4(), uuid4()
    former = Signer(key=FORMER, salt=access.SALT).signature(str(order))
    assert former != access.signature(order)
    assert sees(order, former)
    assert sees(order, access.signature(order))
    assert not sees(other, former)


@pytest.mark.parametrize("signature", ["", ":", "x", "x:y", "é"])
def test_anything_else_shows_nothing(sees, signature):
    order = uuid4()
    assert not sees(order, signature)
    assert not sees(order, f"{access.signature(order)}{signature or ' '}")
    assert not sees(order, Signer(key="another", salt=access.SALT).signature(str(order)))
