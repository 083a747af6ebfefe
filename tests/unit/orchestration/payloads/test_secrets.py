"""Credentials are hidden wherever they stand in what is kept of a failure."""

import pytest

from orchestration.payloads.secrets import HIDDEN, without_secrets

KEY = "kept-by-its-owner-0123"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {KEY}",
        f"{{'Authorization': 'Basic {KEY}', 'Accept': '*/*'}}",
        f"headers={{'X-Api-Key': '{KEY}'}}",
        f"GET /v1/x?api_key={KEY}&page=2",
        f"Set-Cookie: {KEY}; Path=/",
        f"client_secret={KEY}",
        f"postgres://shop:{KEY}@db/shop",
        f"redis://:{KEY}@cache",
        f'{{"password": "{KEY}"}}',
        f"sent bearer {KEY} to it",
    ],
)
def test_credentials_in_texts_are_hidden_by_their_form(text):
    shown = without_secrets(text)
    assert KEY not in shown
    assert HIDDEN in shown


@pytest.mark.parametrize("text", ["sk_test_0123456789abcdef", "eyJhbGciOi.eyJzdWIiOi.SflKxwRJ"])
def test_credentials_of_a_known_make_are_hidden(text):
    assert without_secrets(f"with {text}.") == f"with {HIDDEN}."


def test_credentials_that_are_known_are_hidden_everywhere():
    value = {"echo": [f"you sent {KEY}!"], "n": 1}
    assert without_secrets(value, [KEY]) == {"echo": [f"you sent {HIDDEN}!"], "n": 1}
    assert without_secrets("a short one", ["a", ""]) == "a short one"


def test_fields_are_hidden_by_their_names():
    value = {
        "client_secret": "x",
        "cvc": 123,
        "access_token": None,
        "authorization": {"id": "a1"},
        "inner": {"Password": "p"},
    }
    assert without_secrets(value) == {
        "client_secret": HIDDEN,
        "cvc": HIDDEN,
        "access_token": None,
        "authorization": {"id": "a1"},
        "inner": {"Password": HIDDEN},
    }


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'tracking'",
        'File "agent.py", line 3, in book\n    found = answer["id"]',
        "no answer within 3.0 s",
        "https://partner.example/v1/keys/k-1?partner=bench",
        "the key k-1 was used before",
    ],
)
def test_other_text_stays_as_it_is(text):
    assert without_secrets(text) == text
