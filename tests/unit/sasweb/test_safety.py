"""What production must not have is refused at the start."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from sasweb import safety

GOOD = "pQ3v-Zk8sW1_tYx6LmB0rNc5HgFd7JaUeOi2TqRz9wXyVbCn"
WEAK = ["", "x", "a" * 64, "abc" * 20, "django-insecure-" + GOOD]


def check(**changes):
    usual = {"debug": False, "secret_key": GOOD, "https": False, "environment": "demo"}
    safety.check(**usual | changes)


@pytest.mark.parametrize("production", [{"https": True}, {"environment": "production"}])
def test_debug_pages_are_refused_in_production(production):
    with pytest.raises(ImproperlyConfigured, match="DEBUG=1"):
        check(debug=True, **production)
    check(**production)


@pytest.mark.parametrize("production", [{"https": True}, {"environment": "production"}])
@pytest.mark.parametrize("key", WEAK)
def test_weak_secret_key_is_refused_in_production_without_being_shown(production, key):
    with pytest.raises(ImproperlyConfigured, match="SECRET_KEY is too weak") as refused:
        check(secret_key=key, **production)
    assert len(key) < 10 or key not in str(refused.value)


def test_demo_may_have_debug_pages_and_any_key():
    check(debug=True, secret_key="x")


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
