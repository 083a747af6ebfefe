"""What all partners share: the call, its effect, the ledger's entry, and the interface."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Json = dict[str, Any]
NewId = Callable[[str], str]

# Each partner's do actions (value: the action that undoes it by id, if it has one).
DOES: dict[str, dict[str, str | None]] = {
    "inventory": {"reserve": "release", "release_part": None, "restock": None, "adjust": None},
    "payment": {"authorize": "cancel", "capture": "refund", "customer": None},
    "shipping": {"book": "cancel", "label": "void"},
    "courier": {"book": "cancel"},
    "mail": {"send": None},
    "bench": {"call": None},
}
PARTNERS = tuple(DOES)
CARRIERS = ("shipping", "courier")
WEBHOOK = "webhook"  # the action of what a partner sends by itself
REPORTS = {"payment": {WEBHOOK}}

NO_EFFECT = "none"  # the effect of a rejection, and of an undo without anything to undo


def actions_of(partner: str) -> set[str]:
    """Return the names of all actions of a partner; "undo" and "read" are common to all."""
    does = DOES[partner]
    undoes = {undo for undo in does.values() if undo}
    return set(does) | undoes | REPORTS.get(partner, set()) | {"undo", "read"}


class Call(NamedTuple):
    """One request for a do or an undo, parsed.

    `ref` is the id of the object in the path, `fingerprint` a digest of action and payload.
    """

    partner: str
    action: str
    key: str
    order: str | None
    ref: str | None
    params: Mapping[str, Any]
    fingerprint: str


class Effect(NamedTuple):
    """What a partner decided to do for a call.

    `ref` is the id of the object made or changed, `parent` of the one it belongs to, `amount` is in
    minor units, `kind` names the effect where it is not simply the call's action.
    """

    http: int = 200
    ref: str | None = None
    parent: str | None = None
    amount: int | None = None
    currency: str | None = None
    kind: str | None = None
    detail: Any = None


NOTHING = Effect(kind=NO_EFFECT)


@dataclass(slots=True)
class Entry:
    """One row of the ledger: the outcome of one idempotency key.

    `at` is Unix time in seconds; `effect` is the action that took effect, or "none"; `target` is
    the key that an undo by key names; `detail` is the partner's own, or the error of a rejection;
    `requests` counts the requests with the key.
    """

    seq: int
    at: float
    partner: str
    action: str
    key: str | None
    order: str | None
    ref: str | None
    parent: str | None
    amount: int | None
    currency: str | None
    http: int
    effect: str
    fingerprint: str
    target: str | None
    detail: Any
    requests: int

    @property
    def rejected(self) -> bool:
        """Whether the partner refused permanently."""
        return self.http >= 400


class Partner(ABC):
    """One remote partner: `decide` and `undo` change nothing, `apply` changes its objects.

    At the start only `apply` is called, for each entry of the ledger.
    """

    name: str

    @abstractmethod
    def decide(self, call: Call, new_id: NewId) -> Effect:
        """Return what a do, or an undo by id, would do; raises Refusal."""

    @abstractmethod
    def undo(self, done: Entry, new_id: NewId) -> Effect:
        """Return what undoing the recorded do would do; NOTHING if it is undone already."""

    @abstractmethod
    def apply(self, entry: Entry) -> str | None:
        """Change state as recorded; return the key of the do that this undoes, if any."""

    @abstractmethod
    def body(self, entry: Entry) -> Json:
        """Return the body of the answer to the entry's call, as it was at that time."""

    def view(self, ref: str) -> Json | None:
        """Return an object as it is now, or None if the id is unknown."""
        _ = ref
        return None

    def order_of(self, ref: str) -> str | None:
        """Return the order that an object belongs to, or None."""
        _ = ref
        return None
