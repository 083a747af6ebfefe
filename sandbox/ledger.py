"""The ledger: every key's outcome in order, the idempotency rule, and the partners' state.

Partners decide, the ledger records and applies. A restart applies the recorded entries again.
"""

import secrets
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from sandbox.fields import text
from sandbox.inventory import Inventory
from sandbox.partner import DOES, NONE, NOTHING, Call, Effect, Entry, Json, Partner, entry_row
from sandbox.payment import Payment
from sandbox.refusals import Refusal, already_undone, key_reused
from sandbox.shipping import Shipping
from sandbox.simple import Bench, Mail

ENTRY, AGAIN = "e", "k"  # tags of journal rows: an entry, one more request for a key


class Answer(NamedTuple):
    """What a partner answers: HTTP status, body, and whether it was replayed from the ledger."""

    status: int
    body: Json
    replayed: bool = False


class Ledger:
    """All entries, indexed by key and by order, and the partners whose state they make up."""

    def __init__(self, append: Callable[[tuple[Any, ...]], None]) -> None:
        """Start empty; `append` is handed each journal row before it takes effect."""
        self._append = append
        self.reset()

    def reset(self) -> None:
        """Forget everything: entries, keys, stock and objects."""
        self.inventory = Inventory()
        self.mail = Mail()
        self.partners: dict[str, Partner] = {
            "inventory": self.inventory,
            "payment": Payment(),
            "shipping": Shipping(self.inventory),
            "mail": self.mail,
            "bench": Bench(),
        }
        self.entries: list[Entry] = []
        self.keys: dict[str, Entry] = {}
        self.by_order: dict[str, list[Entry]] = defaultdict(list)
        self.undone: set[str] = set()
        self._waiting: dict[str, int] = {}
        # Makes ids of this run unlike those of a run whose last entries a power cut lost.
        self._token = secrets.token_hex(3)

    def restore(self, row: list[Any]) -> None:
        """Apply one journal row of a former run."""
        if row[0] == ENTRY:
            self._apply(Entry(*row[1:]))
        else:
            self.keys[row[1]].requests += 1

    def requested(self, key: str) -> None:
        """Count one more request for a key."""
        entry = self.keys.get(key)
        if entry is None:
            self._waiting[key] = self._waiting.get(key, 0) + 1
        else:
            self._append((AGAIN, key))
            entry.requests += 1

    def perform(self, call: Call, refuse: Refusal | None = None) -> Answer:
        """Do what a call asks, once per key, and record it before returning.

        A known key replays its answer; `refuse` makes a new key be rejected. Raises Refusal for a
        key that is undone, or reused with another payload, and for what is not definitive.
        """
        if call.key in self.undone:
            raise already_undone(call.key)
        known = self.keys.get(call.key)
        if known is not None:
            if known.fingerprint != call.fingerprint:
                raise key_reused(call.partner, call.key)
            return Answer(known.http, self.body(known), replayed=True)
        try:
            effect = self._decide(call, refuse)
        except Refusal as refusal:
            if not refusal.stored:
                raise
            error = refusal.error(call.partner)
            effect = Effect(refusal.status, ref=call.ref, kind=NONE, detail=error)
        entry = self._entry(call, effect)
        self.record(entry)
        return Answer(entry.http, self.body(entry))

    def set_stock(self, wanted: Json) -> None:
        """Set quantities on hand by SKU; raises Refusal, and records only what changes."""
        changes = self.inventory.changes(wanted)
        if changes:
            call = Call("inventory", "stock", "", None, None, {}, "")
            entry = self._entry(call, Effect(detail=changes))
            entry.key = None
            self.record(entry)

    def record(self, entry: Entry) -> None:
        """Write an entry to the journal, then let it take effect."""
        self._append((ENTRY, *entry_row(entry)))
        self._apply(entry)

    def body(self, entry: Entry) -> Json:
        """Return the body that answered the call which made the entry."""
        if entry.rejected:
            return {"error": entry.detail}
        if entry.action == "undo":
            return {
                "status": "undone",
                "partner": entry.partner,
                "key": entry.target,
                "effect": entry.effect,
                "id": entry.ref,
                "amount": entry.amount,
                "currency": entry.currency,
            }
        return self.partners[entry.partner].body(entry)

    def order_of(self, partner: str, ref: str | None, target: str | None) -> str | None:
        """Return the order of the object `ref`, or of what the key `target` made."""
        if target is not None:
            made = self.keys.get(target)
            return made.order if made else None
        return self.partners[partner].order_of(ref) if ref else None

    def _decide(self, call: Call, refuse: Refusal | None) -> Effect:
        if refuse is not None:
            raise refuse
        if call.action == "undo":
            return self._undo(call)
        return self.partners[call.partner].decide(call, self._new_id)

    def _undo(self, call: Call) -> Effect:
        target = text(call.params, "key")
        made = self.keys.get(target)
        if made is None:
            return NOTHING
        if made.partner != call.partner:
            raise Refusal(
                422,
                "other_partner",
                f"The key '{target}' belongs to {made.partner}, not to {call.partner}. "
                f"Ask {made.partner} to undo it.",
                stored=True,
            )
        if made.action not in DOES[call.partner]:
            raise Refusal(
                422,
                "not_undoable",
                f"The key '{target}' stands for an undo ({made.action}), which cannot be undone.",
                stored=True,
            )
        return NOTHING if made.rejected else self.partners[call.partner].undo(made, self._new_id)

    def _entry(self, call: Call, effect: Effect) -> Entry:
        target = call.params.get("key") if call.action == "undo" else None
        return Entry(
            seq=len(self.entries) + 1,
            at=round(time.time(), 3),
            partner=call.partner,
            action=call.action,
            key=call.key,
            # what it undoes may have been made while this call was on its way
            order=call.order or self.order_of(call.partner, effect.ref, target),
            ref=effect.ref,
            parent=effect.parent,
            amount=effect.amount,
            currency=effect.currency,
            http=effect.http,
            effect=effect.kind or call.action,
            fingerprint=call.fingerprint,
            target=target,
            detail=effect.detail,
            requests=self._waiting.pop(call.key, 1),
        )

    def _apply(self, entry: Entry) -> None:
        self.entries.append(entry)
        if entry.key is not None:
            self.keys[entry.key] = entry
        if entry.order is not None:
            self.by_order[entry.order].append(entry)
        if entry.effect != NONE:
            undone = self.partners[entry.partner].apply(entry)
            if undone is not None:
                self.undone.add(undone)
        if entry.target is not None and not entry.rejected:
            self.undone.add(entry.target)

    def _new_id(self, prefix: str) -> str:
        return f"{prefix}_{self._token}{len(self.entries) + 1:06x}"
