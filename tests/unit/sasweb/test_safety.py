"""What production must not have is refused at the start."""

import secrets

import pytest
from django.core.exceptions import ImproperlyConfigured

from sasweb import safety

GOOD = secrets.token_urlsafe(48)


def test_message_keys_begin_with_the_one_that_signs(monkeypatch):
    assert safety.message_keys("") == []
    assert safety.message_keys(GOOD) == [GOOD]
    monkeypatch.setenv("MESSAGE_KEY", GOOD + "1")
    monkeypatch.setenv("MESSAGE_KEY_FALLBACKS", f"{GOOD}2,{GOOD}3")
    assert safety.message_keys(GOOD) == [GOOD + "1", GOOD + "2", GOOD + "3"]


@pytest.mark.parametrize("name", ["MESSAGE_KEY", "MESSAGE_KEY_FALLBACKS"])
def test_weak_message_key_is_refused(monkeypatch, name):
    monkeypatch.setenv("MESSAGE_KEY", GOOD)
    monkeypatch.setenv(name, "short")
    with pytest.raises(ImproperlyConfigured, match="32 random characters"):
        safety.message_keys("")


def test_fallbacks_without_a_key_are_refused(monkeypatch):
    monkeypatch.setenv("MESSAGE_KEY_FALLBACKS", GOOD)
    with pytest.raises(ImproperlyConfigured, match="without MESSAGE_KEY"):
        safety.message_keys("")
