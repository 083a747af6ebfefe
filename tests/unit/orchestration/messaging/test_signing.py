"""Messages that were not signed with a key of this installation are refused."""

import json

import pytest

from orchestration.messaging import signing
from orchestration.messaging.messages import Request, with_number
from tests.support.messages import request

KEY, OTHER = "a key of thirty-two characters, at least", "another key of thirty-two characters"
QUEUE = "greeter"
MESSAGE = request()


@pytest.fixture(autouse=True)
def _key(settings):
    settings.MESSAGE_KEYS = [KEY]
    settings.UNSIGNED_MESSAGES = False
    yield
    signing.refused(QUEUE)


def signed(message=MESSAGE, queue=QUEUE):
    (raw,) = signing.sign(queue, [message.dump()])
    return raw


def taken(*raw):
    """Return what is taken of messages, without the "look" that stands for refused ones."""
    return [message for message in signing.accepted(QUEUE, raw) if message != signing.LOOK]


def test_signed_message_arrives_as_it_was():
    assert taken(signed()) == [MESSAGE.dump()]
    assert signing.refused(QUEUE) is None


def test_look_needs_no_signature():
    assert signing.sign(QUEUE, [signing.LOOK]) == [signing.LOOK]
    assert signing.accepted(QUEUE, [signing.LOOK]) == [signing.LOOK]


FORGED = {
    "unsigned": lambda raw: MESSAGE.dump(),
    "of another queue": lambda raw: signed(queue="payment"),
    "changed": lambda raw: raw.replace(b'"greet"', b'"offend"'),
    "with a field behind the signature": lambda raw: raw[:-1] + b',"action":"offend"}',
    "with a number behind the signature": lambda raw: with_number(raw, "returned", 3),
    "without its end": lambda raw: raw[:-1],
    "with a space": lambda raw: raw + b" ",
    "with a signature in capitals": lambda raw: raw[:-34] + raw[-34:].upper(),
    "empty": lambda raw: b"",
    "only a signature": lambda raw: raw[-signing.LENGTH :],
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_forged_message_is_refused(forge, caplog):
    genuine = signed()
    forged = forge(genuine)
    assert forged != genuine
    assert taken(forged) == []
    assert "1 messages to greeter were refused" in caplog.text
    assert signing.refused(QUEUE) == (1, forged)


def test_genuine_messages_beside_forged_ones_are_taken_and_the_caller_looks_on():
    assert signing.accepted(QUEUE, [b"{}", signed(), b"x"]) == [MESSAGE.dump(), signing.LOOK]


def test_process_without_a_key_takes_signed_messages(settings):
    raw = signed()
    settings.MESSAGE_KEYS = []
    (message,) = taken(raw)
    assert Request.parse(message) == MESSAGE


def test_unsigned_messages_are_taken_while_the_key_is_introduced(settings):
    settings.UNSIGNED_MESSAGES = True
    assert taken(MESSAGE.dump()) == [MESSAGE.dump()]
    assert taken(signed().replace(b'"greet"', b'"offend"')) == []  # its signature is wrong


def test_key_is_replaced_without_a_gap(settings):
    old = signed()
    settings.MESSAGE_KEYS = [KEY, OTHER]  # everywhere the new one is accepted
    assert taken(old) == [MESSAGE.dump()]
    settings.MESSAGE_KEYS = [OTHER, KEY]  # it signs, and the old one is accepted
    assert taken(old, signed()) == [MESSAGE.dump()] * 2
    settings.MESSAGE_KEYS = [OTHER]
    assert taken(old) == []


def test_signature_is_a_field_that_former_releases_ignore():
    assert set(json.loads(signed())) - set(json.loads(MESSAGE.dump())) == {"mac"}
