import json
from datetime import datetime, timedelta, timezone
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from orchestration.messaging.messages import (
    LATEST,
    MAX_ANSWER,
    MAX_TRACEBACK,
    Evidence,
    Malformed,
    Reply,
    Request,
    with_number,
)
from orchestration.payloads.limits import MAX_BYTES
from tests.support.messages import nested

REPLY = Reply(
    step=1,
    task=uuid4(),
    attempt=1,
    outcome="done",
    result={"id": "x"},
    code="",
    message="",
    tries=1,
    started=1.0,
    ended=2.0,
    by="agent",
)
REQUEST = Request(
    step=1,
    task=uuid4(),
    name="pay",
    attempt=1,
    action="authorize",
    key="k",
    reference="r",
    complete_by=1.0,
    call_timeout=1.0,
    tries=1,
    payload={},
    mode="do",
)


EVIDENCE = Evidence(traceback="é" * (MAX_TRACEBACK // 2), answer="{}", status=500, cut=True)
FAILED = REPLY.altered(outcome="unknown", evidence=EVIDENCE)


@pytest.mark.parametrize("message", [REPLY, REQUEST, FAILED])
def test_messages_survive_a_round_trip(message):
    assert type(message).parse(message.dump()) == message


def altered(**changes):
    return json.dumps({**to_builtins(REPLY), **changes}).encode()


def request(**changes):
    return json.dumps({**to_builtins(REQUEST), **changes}).encode()


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "truncated"),
        (b"\x80\x04\x95pickle", "malformed"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{}", "missing required field `step`"),
        (b"[" * 100_000, "Expected `object`"),
        (b" " * (MAX_BYTES + 1), "bytes; at most"),
        (altered(returned=-1), "Expected `int` >= 0 - at `\\$.returned`"),
        (altered(returned=2**15), "Expected `int` <= 32767"),
        (altered(returned="1"), "Expected `int`, got `str` - at `\\$.returned`"),
        (altered(step="1"), "Expected `int`, got `str`"),
        (altered(step=True), "Expected `int`, got `bool`"),
        (altered(step=-1), "Expected `int` >= 1"),
        (altered(step=2**63), "Expected `int` <="),
        (altered(attempt=2**31), "Expected `int` <="),
        (altered(outcome="perhaps"), "outcome 'perhaps' is not one an agent may report"),
        (altered(outcome="expired"), "outcome 'expired' is not one an agent may report"),
        (altered(task="12"), "Invalid UUID"),
        (altered(message="\x00"), "NUL characters"),
        (altered(message="\ud800"), "not a reply"),
        (altered(started=float("nan")), "malformed"),
        (altered().replace(b'"started": 1.0', b'"started": 1e999'), "out of range"),
        (altered(started=10**4000), "out of range"),
        (altered(started=1e12), "Expected `float` < "),  # a year with five digits
        (altered(ended=-1.0), "Expected `float` >= 0"),
        (altered(retry_after=1e12), "Expected `float` < "),
        (altered(result={"x": 0.5}).replace(b"0.5", b"9" * 5000), "not a reply"),
        (altered(result={"x": [0.5]}).replace(b"0.5", b"-1e999"), "out of range"),
        (altered(result={"x": nested(200)}), "nested deeper than 100"),
        (altered(message="x").replace(b'"x"', b'"\xed\xa0\x80"'), "not a reply"),
        (altered(evidence={"answer": "é" * (MAX_ANSWER // 2 + 1)}), "longer than what is kept"),
        (altered(evidence={"traceback": "x" * (MAX_TRACEBACK + 1)}), "longer than what is kept"),
        (altered(evidence={"status": -1}), "Expected `int` >= 0"),
        (altered(evidence="trace"), "Expected `object"),
    ],
)
def test_malformed_reply_is_refused_with_the_reason(raw, why):
    with pytest.raises(Malformed, match=why):
        Reply.parse(raw)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (request().replace(b'"complete_by": 1.0', b'"complete_by": 1e999'), "out of range"),
        (request(complete_by=10**4000), "out of range"),
        (request(complete_by=1e12), "Expected `float` < "),
        (request(call_timeout=1e12), "Expected `float` < "),
        (request(tries=0), "Expected `int` >= 1"),
        (request(call_timeout=-1), "Expected `float` > 0"),
        (request(attempt=0), "Expected `int` >= 1"),
        (request(payload={"x": nested(100)}), "nested deeper than 100"),
    ],
)
def test_request_with_impossible_values_is_refused(raw, why):
    with pytest.raises(Malformed, match=why):
        Request.parse(raw)


def test_latest_time_of_a_message_is_a_date_in_each_time_zone():
    for hours in (-23, 23):
        zone = timezone(timedelta(hours=hours))
        assert datetime.fromtimestamp(LATEST, zone).year < 9999


def test_unusual_but_valid_text_is_accepted():
    parsed = Reply.parse(altered(message="\\u0000", result={"x": nested(90), "y": [[]] * 500}))
    assert parsed.message == "\\u0000"


def test_text_of_any_language_is_sent_without_escapes():
    text = "Größe 文字 " * 100
    message = REQUEST.altered(payload={"x": text})
    assert len(message.dump()) < len(request()) + len(text.encode())
    assert Request.parse(message.dump()) == message


def test_old_and_new_code_read_each_others_messages():
    assert Reply.parse(altered(what_comes_later={"a": 1})) == REPLY
    before = {name: value for name, value in to_builtins(REPLY).items() if name != "returned"}
    assert Reply.parse(json.dumps(before).encode()) == REPLY


def test_reply_without_evidence_is_as_long_as_before():
    """The reply of the release before has no such field, and one that succeeds does not either."""
    assert b"evidence" not in REPLY.dump()
    assert set(json.loads(FAILED.dump())) - set(json.loads(REPLY.dump())) == {"evidence"}
    returned = with_number(FAILED.dump(), "returned", 2)
    assert Reply.parse(returned) == FAILED.altered(returned=2)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused_without_an_error(raw):
    with pytest.raises(Malformed):
        Reply.parse(raw)


@pytest.mark.parametrize("end", ["", "\n"])
def test_numbers_of_a_returned_message_replace_earlier_ones(end):
    raw = b'{"step":1,"code":",\\"waited\\":7}"}' + end.encode()
    once = with_number(raw, "waited", 1)
    assert once == b'{"step":1,"code":",\\"waited\\":7}","waited":1}'
    both = with_number(with_number(once, "returned", 2), "waited", 3)
    assert both == b'{"step":1,"code":",\\"waited\\":7}","waited":3,"returned":2}'
