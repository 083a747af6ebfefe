"""Entries of a remote service's own ledger, as agents give them to the audit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NONE = "none"  # the kind of an entry that had no effect


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerEntry:
    """One entry of a service's own ledger.

    `key` is the idempotency key of the call, `reference` the task's, `kind` what happened ("none" for
    a refusal); `amount` is in minor units. `detail` is for the application's own audit. `result` is
    what the action returned, as far as undoing it needs that (`manage.py reconcile`).

    >>> class Hotel(Agent):
    ...     name = "hotel"
    ...     def ledger(self):
    ...         rooms = [("42:book:1", "42")]  # as the service lists them
    ...         return [LedgerEntry(key=key, reference=guest, kind="book") for key, guest in rooms]
    """

    key: str | None = None
    reference: str | None = None
    kind: str = NONE
    amount: int | None = None
    currency: str | None = None
    detail: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None
