"""What travels between schedulers and agents: frozen records of primitives, checked on arrival.

Requests and replies are JSON objects on Redis lists. Anything may be pushed there by a mistake or
by malice, so `parse` takes nothing for granted: a message of another shape raises `Malformed` with
the reason, and never reaches a decision.
"""

import json
import math
import re
from dataclasses import dataclass
from enum import StrEnum
from types import NoneType
from typing import Any, ClassVar, Self
from uuid import UUID

from .payloads.limits import DEEPEST, MAX_BYTES, is_deep
from .states import Health, Outcome

LARGEST = 2**63  # no number in a message is as large, nor is it infinite
NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # not one of a backslash and the word u0000


class Malformed(ValueError):
    """A message that cannot be understood; its text says why."""


# How often a message came back, at its end: it is not parsed for that, as it may be nested too deeply
# to be written anew.
NUMBERS = re.compile(rb'((?:,"(?:returned|waited)":\d+)*)}$')


def with_number(raw: bytes, name: str, number: int) -> bytes:
    """Return a message with another number of times that it `returned` or `waited`."""
    raw = raw.rstrip()
    found = NUMBERS.search(raw)
    if found is None:
        return raw
    numbers = dict(re.findall(rb'"(\w+)":(\d+)', found[1])) | {name.encode(): b"%d" % number}
    return raw[: found.start()] + b"".join(b',"%b":%b' % one for one in numbers.items()) + b"}"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in {math.inf, -math.inf}:
        raise ValueError(f"{text} is too large a number")
    return number


# made once: json.loads would make one for each message
READER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


def _read(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in `raw`, every value of which can be stored; raise `Malformed`."""
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
    """The common part: how a message becomes bytes and back; `types` are those of each field."""

    types: ClassVar[dict[str, tuple[type, ...]]] = {}

    def dump(self) -> bytes:
        """Return the message as compact JSON."""
        return json.dumps(vars(self), ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """Return the message in `raw`; raise `Malformed` if it is none of this kind.

        Old and new code run side by side: unknown fields are ignored, and those that have a default
        may be missing.
        """
        data = _read(raw)
        known = {name: data[name] for name in cls.types if name in data}
        # a default is an attribute of the class
        missing = (name for name in cls.types if name not in known and not hasattr(cls, name))
        if names := sorted(missing):
            raise Malformed(f"fields missing: {', '.join(names)}")
        for name, value in known.items():
            if type(value) not in cls.types[name]:  # what JSON makes is of no subclass
                raise Malformed(f"{name} has type {type(value).__name__}")
            if isinstance(value, (int, float)) and not -LARGEST < value < LARGEST:
                raise Malformed(f"{name} is too large a number")
        message = cls(**known)
        message.check()
        return message

    def check(self) -> None:
        """Raise `Malformed` where a field has the right type and a wrong value."""


class Mode(StrEnum):
    """What an attempt is for."""

    DO = "do"  # have it done; a repeat under the same key is harmless
    SETTLE = "settle"  # learn whether it was done: ask by key if that can be, otherwise repeat
    ASK = "ask"  # learn whether it was done, and never repeat: the service has forgotten the key


MODES = frozenset(Mode)
# what an agent may report; made once, as each message is held against it
REPORTED = frozenset(Outcome.values) - {Outcome.EXPIRED}


@dataclass(frozen=True, kw_only=True)
class Request(Message):
    """Scheduler to agent: all that one attempt at a step needs (P7).

    Times are seconds; `complete_by` is a Unix time on the database's clock. `key` is the
    idempotency key that goes to the remote service, the same in every attempt of a `generation`.
    `mode` is a `Mode`. `dispatch` is a number that no other dispatch has, of this timeline of the
    database or of one that a failover lost. `in_doubt` says that an earlier attempt under the key
    may have had its effect. `passed` is how often a worker that does not know the action has put it
    back into the inbox.
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
        """Refuse an unknown mode, and numbers that no attempt has."""
        if self.mode not in MODES:
            raise Malformed(f"mode {self.mode!r} is none")
        if self.step <= 0 or self.attempt <= 0 or self.tries <= 0 or self.call_timeout <= 0:
            raise Malformed("step, attempt, tries and call_timeout are positive numbers")
        if not 0 <= self.passed < 2**15:
            raise Malformed("passed is a small number")


@dataclass(frozen=True, kw_only=True)
class Reply(Message):
    """Agent to scheduler: how one attempt ended (P8, P25).

    `started` and `ended` are Unix times on the database's clock; `tries` is how many calls the
    agent made; `by` is the agent's instance id. `retry_after` is the seconds for which the service
    asked to be left alone, if it did. `generation` and `dispatch` are the request's (0: of an agent
    that does not know them). `in_doubt` is whether the effect may have happened under the key, by
    this attempt or an earlier one; None if this one says nothing about it. `returned` is how often
    the schedulers failed to record it: it came back from the dead letters each time; `waited`, how
    often it could not be recorded yet, as another session had locked a row that it needs. `health`
    is what it says about the service; empty: what its outcome does.
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
        """Refuse an outcome an agent cannot have, and a task id that is none."""
        if self.outcome not in REPORTED:
            raise Malformed(f"outcome {self.outcome!r} is not one an agent may report")
        if self.health and self.health not in Health:
            raise Malformed(f"health {self.health!r} is none that an agent may report")
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
