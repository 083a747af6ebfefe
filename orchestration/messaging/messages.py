"""Messages between schedulers and agents: frozen structures, validated on arrival.

Requests and replies are JSON objects on Redis lists. Other programs may push anything there, by mistake
or malice. So `parse` validates each message: one of another shape raises `Malformed` with the reason, and
never reaches a decision. msgspec compiles the validation from the types.
"""

import re
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Self, TypeVar
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType, structs

from ..payloads.limits import DEEPEST, MAX_BYTES, is_deep
from ..payloads.text import as_text
from ..states import Health, Outcome

NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # but not an escaped backslash before "u0000"
Kind = TypeVar("Kind", bound="Message")
ENCODER = msgspec.json.Encoder()

# Numbers as far as the database can store them, and pages show them: a datetime ends with the year 9999.
LATEST = 2.0**37  # in the year 6325
LONGEST = 2.0**31  # seconds; some 68 years
Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Id = Annotated[int, Meta(gt=0, le=2**63 - 1)]
Ordinal = Annotated[int, Meta(gt=0, lt=2**31)]
Generation = Annotated[int, Meta(ge=0, lt=2**31)]
Count = Annotated[int, Meta(ge=0, lt=2**15)]  # a small number
Time = Annotated[float, Meta(ge=0, lt=LATEST)]
Seconds = Annotated[float, Meta(ge=0, lt=LONGEST)]
Positive = Annotated[float, Meta(gt=0, lt=LONGEST)]


class Malformed(ValueError):
    """A message that cannot be parsed; its text says why."""


# The counters at the end of a message. They are replaced in the raw text, as a deeply nested message
# cannot be serialized again.
NUMBERS = re.compile(rb'((?:,"(?:returned|waited)":\d+)*)}$')


def with_number(raw: bytes, name: str, number: int) -> bytes:
    """Return a message with another count of `returned` or `waited`."""
    raw = raw.rstrip()
    match = NUMBERS.search(raw)
    if match is None:
        return raw
    numbers = dict(re.findall(rb'"(\w+)":(\d+)', match[1])) | {name.encode(): b"%d" % number}
    return raw[: match.start()] + b"".join(b',"%b":%b' % pair for pair in numbers.items()) + b"}"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Serialization and validation of a message."""

    def dump(self) -> bytes:
        """Return the message as compact JSON."""
        return ENCODER.encode(self)

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """Return the message in `raw`; raise `Malformed` if it is not of this kind.

        Old and new releases run side by side: unknown fields are ignored, and fields with a default may
        be missing.
        """
        if len(raw) > MAX_BYTES:
            raise Malformed(f"{len(raw)} bytes; at most {MAX_BYTES} are taken")
        try:
            message: Self = _decoder(cls).decode(raw)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Malformed(f"not a {cls.__name__.lower()}: {error}") from error
        if rb"\u0000" in raw and NUL.search(raw):
            raise Malformed("NUL characters cannot be stored")
        deep = raw.count(b"[") + raw.count(b"{") > DEEPEST
        if deep and is_deep([getattr(message, name) for name in cls.__struct_fields__]):
            raise Malformed(f"nested deeper than {DEEPEST} levels")
        message.check()
        return message

    def altered(self, **fields: Any) -> Self:
        """Return the message with other values of some fields."""
        return structs.replace(self, **fields)

    def check(self) -> None:
        """Raise `Malformed` if a field has the right type and a wrong value."""


@cache
def _decoder(kind: type[Kind]) -> msgspec.json.Decoder[Kind]:
    return msgspec.json.Decoder(kind)


class Mode(StrEnum):
    """The purpose of an attempt."""

    DO = "do"  # perform the action; a repeat under the same key is harmless
    SETTLE = "settle"  # find out whether it was done: ask by key if possible, otherwise repeat
    LOOK = "look"  # ask for the result of what the service accepted
    ASK = "ask"  # find out, and never repeat: the service has forgotten the key


# computed once, as every message is checked against them
MODES = frozenset(Mode)
HEALTHS = frozenset(Health.values)
# outcomes that an agent may report
REPORTED = frozenset(Outcome.values) - {Outcome.EXPIRED}


class Request(Message, frozen=True, kw_only=True):
    """Scheduler to agent: everything that one attempt at a step needs (P7).

    Times are in seconds; `complete_by` is a Unix time on the database's clock. `key` is the idempotency
    key for the remote service, the same in every attempt of a `generation`. `mode` is a `Mode`.
    `dispatch` is unique among all dispatches, including those of a timeline that a failover lost.
    `in_doubt`: an earlier attempt under the key may have had an effect. `look` is the number of the look at
    an accepted request, 0 for an attempt, and `accepted` the service's last answer to that. `passed` is how
    often a worker that does not know the action has returned it to the inbox.
    """

    step: Id
    task: UUID
    name: str
    attempt: Ordinal
    action: str
    key: str
    reference: str
    complete_by: Time
    call_timeout: Positive
    tries: Ordinal
    payload: dict[str, Any]
    mode: str
    generation: Generation = 0
    dispatch: Number = 0
    in_doubt: bool = True
    look: Generation = 0
    accepted: dict[str, Any] = {}
    passed: Count = 0

    def check(self) -> None:
        """Refuse an unknown mode."""
        if self.mode not in MODES:
            raise Malformed(f"mode {self.mode!r} is unknown")


# Bytes of what shows a failure. A release that allows more has to be read by the one before it: raise
# what is read first, and what is written in the release after.
MAX_TRACEBACK, MAX_ANSWER = 8_192, 4_096


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why an attempt failed: the traceback of an exception, and what the service answered last.

    `status` is that of an HTTP answer (0: none); `cut`: the answer was longer. Neither has credentials.
    """

    traceback: str = ""
    answer: str = ""
    status: Count = 0
    cut: bool = False

    def too_long(self) -> bool:
        """Return whether it is longer than what is kept."""
        return (
            len(self.traceback.encode()) > MAX_TRACEBACK or len(self.answer.encode()) > MAX_ANSWER
        )


class Accepted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the service answered to a request whose result comes later.

    `id` is its own name of it; `look` the seconds after which it is asked, None if it cannot be: 0 if it is
    asked only once, when the time is over.
    """

    id: Annotated[str, Meta(max_length=200)] = ""
    look: Seconds | None = None


class Reply(Message, frozen=True, kw_only=True):
    """Agent to scheduler: how one attempt ended (P8, P25).

    `started` and `ended` are Unix times on the database's clock. `tries` is the number of calls that
    the agent made; `by` is the agent's instance id. `retry_after` is the pause that the service asked
    for, in seconds. `generation` and `dispatch` are the request's (0: from an agent that does not know
    them). `in_doubt` is whether the effect may have happened under the key, by this attempt or an earlier
    one; None if this attempt says nothing about it. `returned` counts the returns from the dead letters
    after the schedulers failed to record it. `waited` counts the times when another session had locked a
    row that it needs. `health` is what it says about the service; empty: as its outcome implies.
    `evidence` is sent with failures only: without it a reply is as long as it was. `wait` is sent with
    what the service accepted. `look` is the request's.
    """

    step: Id
    task: UUID
    attempt: Ordinal
    outcome: str
    result: dict[str, Any]
    code: str
    message: str
    tries: Generation
    started: Time
    ended: Time
    by: str
    retry_after: Seconds | None = None
    generation: Generation = 0
    dispatch: Number = 0
    in_doubt: bool | None = None
    returned: Count = 0
    waited: Count = 0
    health: str = ""
    evidence: Evidence | UnsetType = UNSET
    wait: Accepted | UnsetType = UNSET
    look: Generation | UnsetType = UNSET

    def check(self) -> None:
        """Refuse an outcome that an agent cannot report, and an unknown health."""
        if self.outcome not in REPORTED:
            raise Malformed(f"outcome {self.outcome!r} is not one an agent may report")
        if self.health and self.health not in HEALTHS:
            raise Malformed(f"health {self.health!r} is unknown")
        if self.evidence is not UNSET and self.evidence.too_long():
            raise Malformed("its evidence is longer than what is kept")

    def verified(self) -> "Reply":
        """Return the reply as it will be read; raise `Malformed` or `TypeError` if it cannot be sent.

        What JSON has no form for raises here: the encoder of messages replaces some of it, and what is
        read then differs.
        """
        try:
            read = Reply.parse(self.dump())
            if read.result != self.result:
                as_text(self.result)
        except (ValueError, RecursionError) as error:
            raise Malformed(str(error)) from error
        return read
