"""The ledger: the outcome of every idempotency key, and the partners' objects that result.

Partners decide, the ledger records and applies. At the start all recorded entries are applied again.
"""

import asyncio
import json
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from sandbox.bench import Bench
from sandbox.database import Database
from sandbox.fields import text
from sandbox.inventory import Inventory
from sandbox.mail import Mail
from sandbox.partner import DOES, NO_EFFECT, NOTHING, Call, Effect, Entry, Json, Partner
from sandbox.payment import Payment
from sandbox.refusals import Refusal, already_undone, key_reused
from sandbox.shipping import Courier, Shipping

FIELDS = tuple(Entry.__dataclass_fields__)
INSERT = f"INSERT INTO entries VALUES ({', '.join('?' * len(FIELDS))})"  # noqa: S608 constant
fields_before_detail = attrgetter(*FIELDS[:-2])


class Answer(NamedTuple):
    """A partner's response: HTTP status, body, and whether it was replayed from the ledger."""

    status: int
    body: Json
    replayed: bool = False


class Ledger:
    """The entries in the database, and in memory the partners with the objects made from them."""

    def __init__(self, database: Database, site: str = "") -> None:
        """Load the entries of the former run; `site` is the address of the pages."""
        self._database = database
        self._site = site
        self._uncommitted: list[tuple[object, ...]] = []  # rows
        self._waiters: list[asyncio.Future[None]] = []
        self.load()

    def load(self) -> None:
        """Replace what is in memory by the effects of the entries in the database."""
        self.inventory = Inventory()
        self.mail = Mail()
        self.partners: dict[str, Partner] = {
            "inventory": self.inventory,
            "payment": Payment(self._site),
            "shipping": Shipping(self.inventory),
            "courier": Courier(self.inventory),
            "mail": self.mail,
            "bench": Bench(),
        }
        self.last_seq = 0
        self.undone: set[str] = set()
        self.keys: set[str] = set()  # spares most requests a SELECT
        self._waiting: dict[str, int] = {}  # requests of keys without an entry
        # Makes ids of this run unlike those of a run whose last entries a power cut lost.
        self._token = secrets.token_hex(3)
        for entry in self.select("ORDER BY seq"):
            self._apply(entry)

    async def committed(self) -> None:
        """Wait until all entries are committed; raises sqlite3.Error if they cannot be."""
        if self._uncommitted:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def commit(self) -> None:
        """Commit the entries of the requests that arrived together, in one transaction."""
        if not self._uncommitted:
            return
        rows, self._uncommitted = self._uncommitted, []
        waiters, self._waiters = self._waiters, []
        failure = None
        try:
            with self._database.transaction():
                self._database.executemany(INSERT, rows)
        except sqlite3.Error as error:
            failure = error
            self.load()
        for waiter in waiters:
            if waiter.done():
                continue  # its request was cancelled
            if failure is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(failure)

    def execute(self, statement: str, params: Sequence[object] = ()) -> sqlite3.Cursor:
        """Execute a statement that finds all entries committed."""
        self.commit()
        return self._database.execute(statement, params)

    def select(self, clause: str, *params: object) -> Iterator[Entry]:
        """Yield the entries that a constant SQL clause selects."""
        for row in self.execute("SELECT * FROM entries " + clause, params):  # noqa: S608 constant
            entry = Entry(*row)
            if entry.detail is not None:
                entry.detail = json.loads(entry.detail)
            yield entry

    def count(self, clause: str) -> int:
        """Return how many entries a constant SQL clause selects."""
        rows = self.execute("SELECT count(*) FROM entries " + clause)  # noqa: S608 constant
        return int(rows.fetchone()[0])

    def find(self, key: str) -> Entry | None:
        """Return the entry of an idempotency key."""
        return next(self.select("WHERE key = ?", key), None) if key in self.keys else None

    def count_request(self, key: str) -> None:
        """Count one more request for a key."""
        if key in self.keys:
            self.execute("UPDATE entries SET requests = requests + 1 WHERE key = ?", (key,))
        else:
            self._waiting[key] = self._waiting.get(key, 0) + 1

    def perform(self, call: Call, refuse: Refusal | None = None) -> Answer:
        """Do what a call asks, once per key, and record it before returning.

        A known key replays its answer; `refuse` makes a new key be rejected. Raises Refusal for a
        key that is undone, or reused with another payload, and for what is not definitive.
        """
        if call.key in self.undone:
            raise already_undone(call.key)
        known = self.find(call.key)
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
            effect = Effect(refusal.status, ref=call.ref, kind=NO_EFFECT, detail=error)
        entry = self._entry(call, effect)
        self.record(entry)
        return Answer(entry.http, self.body(entry))

    def set_stock(self, levels: Json) -> None:
        """Set quantities on hand by SKU; raises Refusal, and records only what changes."""
        changes = self.inventory.changes(levels)
        if changes:
            self._happen(Call("inventory", "stock", "", None, None, {}, ""), Effect(detail=changes))

    def act(self, partner: str, action: str, ref: str) -> Entry:
        """Have something happen to an object without a request, as its customer acts; raises Refusal."""
        order = self.partners[partner].order_of(ref)
        call = Call(partner, action, "", order, ref, {}, "")
        return self._happen(call, self.partners[partner].decide(call, self._new_id))

    def _happen(self, call: Call, effect: Effect) -> Entry:
        entry = self._entry(call, effect)
        entry.key = None
        self.record(entry)
        return entry

    def record(self, entry: Entry) -> None:
        """Apply an entry, and have it committed soon: await `committed` before an answer."""
        detail = None if entry.detail is None else json.dumps(entry.detail)
        if not self._uncommitted:
            asyncio.get_running_loop().call_soon(self.commit)
        self._uncommitted.append((*fields_before_detail(entry), detail, entry.requests))
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
            made = self.find(target)
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
        made = self.find(target)
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
            seq=self.last_seq + 1,
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
        self.last_seq = entry.seq
        if entry.key is not None:
            self.keys.add(entry.key)
        self.inventory.now = entry.at
        if entry.effect != NO_EFFECT:
            undone = self.partners[entry.partner].apply(entry)
            if undone is not None:
                self.undone.add(undone)
        if entry.target is not None and not entry.rejected:
            self.undone.add(entry.target)

    def _new_id(self, prefix: str) -> str:
        return f"{prefix}_{self._token}{self.last_seq + 1:06x}"
