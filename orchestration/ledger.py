"""What a remote service says that it did: the vocabulary between agents and the audit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NONE = "none"  # the kind of an entry that had no effect


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerEntry:
    """One line of a service's own books.

    `key` is the one that the call carried, `reference` the task's, `kind` what happened ("none" for
    a refusal); `amount` is in minor units. `detail` is for the application's own audit.
    """

    key: str | None = None
    reference: str | None = None
    kind: str = NONE
    amount: int | None = None
    currency: str | None = None
    detail: Mapping[str, Any] | None = None
