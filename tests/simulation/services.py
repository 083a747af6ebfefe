"""A simulated remote service: effects once per key, undone by key or by result."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestration.states import Direction, Outcome


class Broken(AssertionError):
    """An invariant does not hold; the text says which, and where."""


def require(holds: bool, what: str) -> None:
    """Raise `Broken` unless `holds`."""
    if not holds:
        raise Broken(what)


@dataclass(kw_only=True, slots=True)
class Effect:
    """Something that was done, and whether it was undone."""

    id: str
    task: str
    step: str
    key: str
    undone_by: str = ""  # the key of the undo, or who did it

    @property
    def undone(self) -> bool:
        """Return whether it was undone."""
        return bool(self.undone_by)


@dataclass(frozen=True, kw_only=True, slots=True)
class Promise:
    """Something that was accepted, and is done or refused later."""

    id: str
    task: str
    step: str
    key: str


Answer = tuple[str, dict[str, Any], str]  # outcome, result, code


@dataclass(kw_only=True)
class Service:
    """One service with its ledger; `witness` is called with each effect before it is recorded.

    It remembers the answer to a key for `memory` seconds (None: for ever), refuses a *do* under a
    key that was undone, and can say what it knows of a key for ever if it can be asked at all.
    Where it does not store refusals, one may also come before it has looked at the key, and a repeat
    may be accepted. While a request is at work, others with its key are answered "busy".
    """

    name: str
    memory: float | None
    can_ask: bool
    stores_refusals: bool
    witness: Callable[[str, str, Effect, str], None]
    effects: list[Effect] = field(default_factory=list)
    answers: dict[str, tuple[float, Answer]] = field(default_factory=dict)
    payloads: dict[str, str] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    undos: dict[str, str] = field(default_factory=dict)  # undo key → effect id
    promise: Callable[[str, Promise], bool] = lambda _name, _promise: False  # is it ended later?
    pending: dict[str, Promise] = field(default_factory=dict)  # what was accepted, by key
    promised: dict[str, str] = field(default_factory=dict)  # key of what was accepted, by its id
    refuse_next: int = 0
    at_work: set[str] = field(default_factory=set)
    standing: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))

    def call(
        self, now: float, key: str, direction: str, task: str, step: str, payload: Any,
        *, by_hand: bool = False,
    ) -> Answer:  # fmt: skip
        """Carry out one call under its key; what a person asks for by hand ends at once."""
        text = json.dumps(payload, sort_keys=True)
        known = self.payloads.setdefault(key, text)
        require(known == text, f"key {key} has two payloads: {known} and {text}")
        if key in self.at_work:
            return (Outcome.UNKNOWN, {}, "busy")
        if self.refuse_next and not self.stores_refusals:
            self.refuse_next -= 1
            return (Outcome.REJECTED, {}, "refused")
        if key in self.pending:
            return (Outcome.LATER, {"id": self.pending[key].id}, "accepted")
        if key in self.answers:
            at, answer = self.answers[key]
            if self.memory is None or now < at + self.memory:
                return answer
        answer = self._carry_out(key, direction, task, step, payload, by_hand=by_hand)
        self.answers[key] = (now, answer)
        return answer

    def _carry_out(
        self, key: str, direction: str, task: str, step: str, payload: Mapping[str, Any],
        *, by_hand: bool,
    ) -> Answer:  # fmt: skip
        if key in self.closed:
            return (Outcome.REJECTED, {}, "closed")
        if self.refuse_next:
            self.refuse_next -= 1
            return (Outcome.REJECTED, {}, "refused")
        if direction == Direction.UNDO:
            return self._undo(key, payload)
        promise = Promise(id=f"{self.name}-p{len(self.promised)}", task=task, step=step, key=key)
        if not by_hand and self.promise(self.name, promise):
            self.pending[key] = promise
            self.promised[promise.id] = key
            return (Outcome.LATER, {"id": promise.id}, "accepted")
        effect = Effect(id=f"{self.name}-{len(self.effects)}", task=task, step=step, key=key)
        self.witness("do", self.name, effect, key)
        self.effects.append(effect)
        self.standing[task, step] += 1
        return (Outcome.DONE, {"id": effect.id}, "")

    def end(self, now: float, key: str, *, refused: bool) -> Answer:
        """Do what was accepted, or refuse it; what was undone meanwhile is refused."""
        promise = self.pending.pop(key)
        if key in self.closed:
            answer: Answer = (Outcome.REJECTED, {}, "closed")
        elif refused:
            answer = (Outcome.REJECTED, {}, "declined")
        else:
            effect = Effect(id=promise.id, task=promise.task, step=promise.step, key=key)
            self.witness("do", self.name, effect, key)
            self.effects.append(effect)
            self.standing[effect.task, effect.step] += 1
            answer = (Outcome.DONE, {"id": effect.id}, "")
        self.answers[key] = (now, answer)
        return answer

    def _undo(self, key: str, payload: Mapping[str, Any]) -> Answer:
        if "key" in payload:
            self.closed.add(payload["key"])
            effects = [effect for effect in self.effects if effect.key == payload["key"]]
        else:
            effects = [effect for effect in self.effects if effect.id == payload["id"]]
            accepted = self.promised.get(str(payload["id"]))
            require(bool(effects or accepted), f"undo of {payload['id']}, which there is not")
            if accepted:
                self.closed.add(accepted)
        for effect in effects:
            self.witness("undo", self.name, effect, key)
            if not effect.undone:
                self.standing[effect.task, effect.step] -= 1
            effect.undone_by = key
        self.undos[key] = effects[0].id if effects else ""
        return (Outcome.DONE, {}, "")

    def left(self, task: str, step: str) -> list[Effect]:
        """Return the effects of a step that are not undone."""
        return [
            effect
            for effect in self.effects
            if (effect.task, effect.step, effect.undone) == (task, step, False)
        ]

    def take_back(self, key: str, keep: Any = None) -> None:
        """Undo by hand what stands under a key, but for the effect that counts: a person has found it."""
        for effect in self.effects:
            if effect.key == key and not effect.undone and effect.id != keep:
                effect.undone_by = "a person"
                self.standing[effect.task, effect.step] -= 1

    def ask(self, key: str, *, close: bool) -> Answer:
        """Say what is known of a key. With `close`, "nothing" is a promise: the key is refused later."""
        if key in self.at_work:
            return (Outcome.UNKNOWN, {}, "busy")
        for effect in self.effects:
            if effect.key == key:
                return (Outcome.DONE, {"id": effect.id}, "")
        if key in self.pending:
            return (Outcome.LATER, {"id": self.pending[key].id}, "accepted")
        if key in self.answers and self.answers[key][1][0] == Outcome.REJECTED:
            return self.answers[key][1]
        if key in self.undos:
            return (Outcome.DONE, {}, "")
        if close:
            self.closed.add(key)
        return (Outcome.ABSENT, {}, "")
