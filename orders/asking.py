"""Requests about an order: what was asked of the engine, and whether it was in time.

A request is noted on the order in the transaction that posts it. The engine answers with a status
message: accepted, the note goes away; refused, it stays, so that the order's page can say so.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID


class Act(StrEnum):
    """What may be asked."""

    CARD = "card"
    LEAVE_OUT = "leave_out"
    WAIT = "wait"
    CANCEL = "cancel"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request; `refused` is the name of the engine's `Refusal`, empty while it is on its way."""

    id: UUID
    act: Act
    refused: str = ""

    @property
    def pending(self) -> bool:
        """Whether the engine has not answered yet."""
        return not self.refused

    def as_json(self) -> dict[str, str]:
        """Return it as the order's row keeps it."""
        return {**asdict(self), "id": str(self.id)}


def read(note: Mapping[str, Any] | None) -> Asked | None:
    """Return the request that an order's row notes, if any."""
    if note is None:
        return None
    return Asked(id=UUID(note["id"]), act=Act(note["act"]), refused=note.get("refused", ""))
