"""The customer's last request to change an order, as noted on its row.

The request is noted in the transaction that posts it. The engine answers with a status message: an
accepted request is removed from the row; a refused one stays, so that the order's page can show it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _

ADDRESS_ASKED = _(
    "We have passed the new address on. In a moment you will see here whether it came in time."
)
ADDRESS_TOO_LATE = _("The address could not be changed: your parcel is on its way already.")
REMOVAL_ASKED = _(
    "We have passed on what you remove. In a moment you will see here whether it came in time."
)
REMOVAL_TOO_LATE = _(
    "Nothing could be removed: your parcel is on its way already. Once it has arrived, you can send back "
    "here what you do not want."
)


class Change(StrEnum):
    """The changes that can be requested."""

    CARD = "card"
    LEAVE_OUT = "leave_out"
    WAIT = "wait"
    CANCEL = "cancel"
    ADDRESS = "address"
    REMOVE = "remove"


ASKED = {Change.ADDRESS: ADDRESS_ASKED, Change.REMOVE: REMOVAL_ASKED}
TOO_LATE = {Change.ADDRESS: ADDRESS_TOO_LATE, Change.REMOVE: REMOVAL_TOO_LATE}


@dataclass(frozen=True, kw_only=True)
class ChangeRequest:
    """A request; `refused` is the name of the engine's `Refusal`, empty while pending."""

    id: UUID
    act: Change
    refused: str = ""

    @property
    def pending(self) -> bool:
        """Whether it is unanswered."""
        return not self.refused

    def as_json(self) -> dict[str, str]:
        """Return JSON for the order's row."""
        return {**asdict(self), "id": str(self.id)}


def read(note: Mapping[str, Any] | None) -> ChangeRequest | None:
    """Return the request in an order's row, if any."""
    if note is None:
        return None
    return ChangeRequest(
        id=UUID(note["id"]), act=Change(note["act"]), refused=note.get("refused", "")
    )
