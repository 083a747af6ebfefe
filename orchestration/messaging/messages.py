"""Messages between schedulers and agents: frozen dataclasses, validated on arrival.

Requests and replies are JSON objects on Redis lists. Other programs may push anything there, by mistake
or malice. So `parse` validates each message: one of another shape raises `Malformed` with the reason, and
never reaches a decision.
"""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from types import NoneType
from typing import Any, ClassVar, Self
from uuid import UUID

from ..payloads.limits import DEEPEST, MAX_BYTES, is_deep
from ..payloads.text import READER
from ..states import Health, Outcome

LARGEST = 2**63  # the magnitude of a number in a message is smaller
NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # but not an escaped backslash before "u0000"


class Malformed(ValueError):
    """A message that cannot be parsed; its text says why."""


# The counters at the end of a message. They are replaced in the raw text, as a deeply nested message
# cannot be serialized again.
NUMBERS = re.compile(rb'((?:,"(?:returned|waited)":\d+)*)}$')


def with_number(raw: bytes, name: str, number: int) -> bytes:
    """Return a message with another count of `returned` or `waited`."""
    raw = raw.rstrip()
    found = NUMBERS.search(raw)
    if found is None:
        return raw
    numbers = dict(re.findall(rb'"(\w+)":(\d+)', found[1])) | {name.encode(): b"%d" % number}
    return raw[: found.start()] + b"".join(b',"%b":%b' % one for one in numbers.items()) + b"}"


def _read(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in `raw`; raise `Malformed` if a value cannot be stored."""
    if len(raw) > MAX_BYTES:
        raise Malformed(f"{len(raw)} bytes; at most {MAX_BYTES} are taken")
    try:
        data = READER.decode(raw.decode())
        if b"\\u" in raw:  # a lone surrogate cannot be stored
            json.dumps(data, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {error}") from error
    if rb"\u0000" in raw and NUL.search(raw):
        raise Malformed("NUL characters cannot be stored")
    if not isinstance(data, dict):
        raise Malformed(f"a JSON object is expected, not {type(data).__name__}")
    if raw.count(b"[") + raw.count(b"{") > DEEPEST and is_deep(data):
        raise Malformed(f"nested deeper than {DEEPEST} levels")
    return data


@dataclass(frozen=True, kw_only=True)
class Message:
    """Serialization and validation of a message; `types` are the types of each field."""

    types: ClassVar[dict[str, tuple[type, ...]]] = {}

    def dump(self) -> bytes:
        """Return the message as compact JSON."""
        return json.dumps(vars(self), ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """Return the message in `raw`; raise `Malformed` if it is not of this kind.

        Old and new releases run side by side: unknown fields are ignored, and fields with a default may
        be missing.
        """
        data = _read(raw)
        known = {name: data[name] for name in cls.types if name in data}
        # a default is an attribute of the class
        missing = (name for name in cls.types if name not in known and not hasattr(cls, name))
        if names := sorted(missing):
            raise Malformed(f"fields missing: {', '.join(names)}")
        for name, value in known.items():
            if type(value) not in cls.types[name]:  # JSON values are never of a subclass
                raise Malformed(f"{name} has type {type(value).__name__}")
            if isinstance(value, (int, float)) and not -LARGEST < value < LARGEST:
                raise Malformed(f"{name} is too large a number")
        message = cls(**known)
        message.check()
        return message

    def check(self) -> None:
        """Raise `Malformed` if a field has the right type and a wrong value."""


class Mode(StrEnum):
    """The purpose of an attempt."""

    DO = "do"  # perform the action; a repeat under the same key is harmless
    SETTLE = "settle"  # find out whether it was done: ask by key if possible, otherwise repeat
    ASK = "ask"  # find out, and never repeat: the service has forgotten the key


MODES = frozenset(Mode)
# outcomes that an agent may report; computed once, as every reply is checked against it
REPORTED = frozenset(Outcome.values) - {Outcome.EXPIRED}


@dataclass(frozen=True, kw_only=True)
class Request(Message):
    """Scheduler to agent: everything that one attempt at a step needs (P7).

    Times are in seconds; `complete_by` is a Unix time on the database's clock. `key` is the idempotency
    key for the remote service, the same in every attempt of a `generation`. `mode` is a `Mode`.
    `dispatch` is unique among all dispatches, including those of a timeline that a failover lost.
    `in_doubt`: an earlier attempt under the key may have had an effect. `passed` is how often a worker
    that does not know the action has returned it to the inbox.
    """

    step: int
    task: str
    name: str
    attempt: int
    action: str
    key: str
    reference: str
    complete_by: float
    call_timeout: float
    tries: int
    payload: dict[str, Any]
    mode: str
    generation: int = 0
    dispatch: int = 0
    in_doubt: bool = True
    passed: int = 0

    types: ClassVar = {
        "step": (int,),
        "task": (str,),
        "name": (str,),
        "attempt": (int,),
        "action": (str,),
        "key": (str,),
        "reference": (str,),
        "complete_by": (int, float),
        "call_timeout": (int, float),
        "tries": (int,),
        "payload": (dict,),
        "mode": (str,),
        "generation": (int,),
        "dispatch": (int,),
        "in_doubt": (bool,),
        "passed": (int,),
    }

    def check(self) -> None:
        """Refuse an unknown mode, and numbers out of range."""
        if self.mode not in MODES:
            raise Malformed(f"mode {self.mode!r} is unknown")
        if self.step <= 0 or self.attempt <= 0 or self.tries <= 0 or self.call_timeout <= 0:
            raise Malformed("step, attempt, tries and call_timeout are positive numbers")
        if not 0 <= self.passed < 2**15:
            raise Malformed("passed is a small number")


@dataclass(frozen=True, kw_only=True)
class Reply(Message):
    """Agent to scheduler: how one attempt ended (P8, P25).

    `started` and `ended` are Unix times on the database's clock. `tries` is the number of calls that
    the agent made; `by` is the agent's instance id. `retry_after` is the pause that the service asked
    for, in seconds. `generation` and `dispatch` are the request's (0: from an agent that does not know
    them). `in_doubt` is whether the effect may have happened under the key, by this attempt or an earlier
    one; None if this attempt says nothing about it. `returned` counts the returns from the dead letters
    after the schedulers failed to record it. `waited` counts the times when another session had locked a
    row that it needs. `health` is what it says about the service; empty: as its outcome implies.
    """

    step: int
    task: str
    attempt: int
    outcome: str
    result: dict[str, Any]
    code: str
    message: str
    tries: int
    started: float
    ended: float
    by: str
    retry_after: float | None = None
    generation: int = 0
    dispatch: int = 0
    in_doubt: bool | None = None
    returned: int = 0
    waited: int = 0
    health: str = ""

    types: ClassVar = {
        "step": (int,),
        "task": (str,),
        "attempt": (int,),
        "outcome": (str,),
        "result": (dict,),
        "code": (str,),
        "message": (str,),
        "tries": (int,),
        "started": (int, float),
        "ended": (int, float),
        "by": (str,),
        "retry_after": (int, float, NoneType),
        "generation": (int,),
        "dispatch": (int,),
        "in_doubt": (bool, NoneType),
        "returned": (int,),
        "waited": (int,),
        "health": (str,),
    }

    def check(self) -> None:
        """Refuse an outcome that an agent cannot report, a bad task id, and numbers out of range."""
        if self.outcome not in REPORTED:
            raise Malformed(f"outcome {self.outcome!r} is not one an agent may report")
        if self.health and self.health not in Health:
            raise Malformed(f"health {self.health!r} is unknown")
        try:
            UUID(self.task)
        except ValueError as error:
            raise Malformed(f"task {self.task!r} is not a UUID") from error
        if self.retry_after is not None and self.retry_after < 0:
            raise Malformed("retry_after is a number of seconds")
        if not 0 <= self.generation < 2**31 or self.dispatch < 0:
            raise Malformed("generation and dispatch are numbers that a request had")
        if self.step <= 0 or not 0 < self.attempt < 2**31:
            raise Malformed("step and attempt are positive numbers")
        if not (0 <= self.returned < 2**15 and 0 <= self.waited < 2**15):
            raise Malformed("returned and waited are small numbers")
