"""What is left of an error's message, and that no id, number or address makes a cause of its own."""

import string
from dataclasses import replace
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.incidents.fingerprint import VERSION, Cause, normalise


def cause(message, **fields) -> Cause:
    known = {
        "workflow": "w", "step": "s", "direction": "do", "agent": "a", "outcome": "rejected",
        "code": "c", "message": normalise(message),
    }  # fmt: skip
    return Cause(**{**known, **fields})


MESSAGES = [
    ("Your card was declined.", "Your card was declined"),
    ("Your card's security code is incorrect.", "Your card's security code is incorrect"),
    ("You can't do that, and won't learn why", "You can't do that, and won't learn why"),
    ("No such payment_intent: 'pi_3MtwBwLkdIwHu7ix28a3tqPa'", "No such payment_intent: <value>"),
    ("No such charge: ch_1NG8Du2eZvKYlo2C", "No such charge: <#>"),
    ("no answer within 10.0 s", "no answer within <#> s"),
    ("no answer within 10s", "no answer within <#>"),
    ("limit of 1,250.50 exceeded by 12 %", "limit of <#> exceeded by <#>"),
    ("balance is -3.50", "balance is <#>"),
    ("HTTP 503: Service Unavailable", "HTTP <#>: Service Unavailable"),
    (
        "Cannot connect to host 127.0.0.1:8977 ssl:default [Connect call failed ('127.0.0.1', 8977)]",
        "Cannot connect to host <address> ssl:default [Connect call failed (<value>, <#>)]",
    ),
    ("Cannot connect to host api.example.com:443", "Cannot connect to host <address>"),
    ("connection to localhost:5432 refused", "connection to <address> refused"),
    ("no route to 2001:db8::ff00:42:8329", "no route to <address>"),
    ("no route to [::1]:8080", "no route to <address>"),
    ("std::bad_alloc", "std::bad_alloc"),
    ("see https://example.com/v1/charges/12?a=b.", "see <url>"),
    ("see (https://example.com/x), please", "see (<url>), please"),
    ("mail to ada.lovelace+shop@mail.example.org bounced", "mail to <address> bounced"),
    ("5e4c7bd4-6f3e-4b8e-9c43-0d6b4a3a6a10 is unknown", "<#> is unknown"),
    ("5E4C7BD46F3E4B8E9C430D6B4A3A6A10 is unknown", "<#> is unknown"),
    ("key 018f3b2c:hello:do:2 was used", "key <#>:hello:do:<#> was used"),
    ("7KQ4M-9XD2P cannot be found", "<#> cannot be found"),
    ("job deadbeef was lost", "job <#> was lost"),
    ("KQFM-XDTP cannot be found", "<#> cannot be found"),
    ("expired at 2026-11-21T15:45:07.123Z", "expired at <time>"),
    ("expired at 2026-11-21 15:45:07 UTC, it is 15:46:00", "expired at <time>, it is <time>"),
    ("since 2026-11-21", "since <time>"),
    ('unknown colour "red"', "unknown colour <value>"),
    ("unknown colour `red`", "unknown colour <value>"),
    ("unknown colour “red”", "unknown colour <value>"),
    ("missing: 12", "missing: <#>"),
    ("missing: 12, 15 and 19", "missing: <#>"),
    ("'it's the user's' is not a name", "<value> is not a name"),
    ('{"error": {"id": "x1", "n": 5}}', "{<value>: {<value>: <value>: <#>}}"),
    ("OAuth2 token has expired", "<#> token has expired"),
    ("token eyJhbGciOiJIUzINiJabc was refused", "token <#> was refused"),
    ("InternalServerErrorException in handler", "InternalServerErrorException in handler"),
    ("balance -12345678901234567890123456789012 is too low", "balance <#> is too low"),
    ("item A-12345678901234567890123456789012 is gone", "item <#> is gone"),
    ("order-e3e70682-c209-4cac-629f-6fbed82c07cd is gone", "<#> is gone"),
    ("ConnectionResetError: [Errno 104]", "ConnectionResetError: [Errno <#>]"),
    ("<html><b>Bad Gateway</b></html>", "html b Bad Gateway /b /html"),
    ("  two\n lines\t", "two lines"),
    ("", ""),
    ("\ud800 broken", "? broken"),
]


@pytest.mark.parametrize(("message", "left"), MESSAGES)
def test_fingerprint_ignores_ids_of_a_task(message, left):
    assert normalise(message) == left


def test_fingerprint_ignores_the_end_of_a_long_message():
    """Agents cut answers off, at a place that depends on how long the ids in them are."""
    rest = "and it went on to say many things of no consequence, one after the other, " * 9
    short, long = (f"Order {word} is unknown, {rest}"[:500] for word in ("7", "7" * 90))
    assert normalise(short) == normalise(long)


IDS = st.one_of(
    st.uuids().map(str),
    st.uuids().map(lambda uuid: uuid.hex),
    st.integers().map(str),
    st.integers(min_value=2**28).map(lambda n: f"{n:x}"),
    st.integers(min_value=0).map(lambda n: f"A-{n}"),
    st.integers(min_value=0).map(hex),
    st.floats(allow_nan=False, allow_infinity=False, min_value=0, max_value=1e9).map(
        lambda n: f"{n:,.2f}"
    ),
    st.text(string.ascii_letters + string.digits, min_size=8, max_size=24).map(
        lambda s: f"pi_{s}7"
    ),
)
WORDS = st.lists(st.sampled_from(["the", "card", "was", "not", "found", "at"]), max_size=5)


@given(before=WORDS, after=WORDS, first=IDS, other=IDS)
def test_same_message_with_other_ids_is_one_cause(before, after, first, other):
    texts = [" ".join([*before, word, *after]) for word in (first, other)]
    assert normalise(texts[0]) == normalise(texts[1])


@given(data=st.data(), before=WORDS, after=WORDS)
@pytest.mark.parametrize("kind", ["uuid", "number", "token", "quoted", "address", "url"])
def test_ids_of_one_kind_make_one_fingerprint(kind, data, before, after):
    made = {
        "uuid": st.uuids().map(str),
        "number": st.integers(min_value=0).map(str),
        "token": st.text(string.ascii_letters + string.digits, min_size=4).map(
            lambda s: f"ch_{s}3"
        ),
        "quoted": st.text(string.ascii_letters + " ", min_size=1).map(lambda s: f'"{s}"'),
        "address": st.ip_addresses(v=4).map(str),
        "url": st.text(string.ascii_letters, min_size=1).map(lambda s: f"https://x.example/{s}"),
    }[kind]
    first, second = (
        cause(" ".join([*before, data.draw(made), *after])).fingerprint for _ in range(2)
    )
    assert first == second


@given(st.text())
def test_fingerprint_accepts_any_text(text):
    assert len(normalise(text)) <= 200
    assert cause(text).fingerprint.startswith(f"v{VERSION}-")


@given(st.text(min_size=1), st.text(min_size=1))
def test_other_codes_are_other_causes(first, other):
    same = first == other
    assert (cause("x", code=first).fingerprint == cause("x", code=other).fingerprint) == same


@pytest.mark.parametrize(
    "name", ["workflow", "step", "direction", "agent", "outcome", "code", "message"]
)
def test_fingerprint_differs_with_each_part(name):
    word = uuid4().hex
    assert replace(cause("x"), **{name: word}).fingerprint != cause("x").fingerprint


def test_titles_of_different_causes_differ():
    assert (
        cause("x", workflow="ab", step="c").fingerprint
        != cause("x", workflow="a", step="bc").fingerprint
    )


def test_title_names_what_failed():
    assert cause("x").title == "w: s failed (c)"
    assert cause("x", direction="undo", code="", outcome="expired").title == (
        "w: the undo of s failed (expired)"
    )
