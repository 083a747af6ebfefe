"""How an order differs from a parcel of goods in stock that is paid at once. Pure functions.

Most orders do not: they have none of it, in their rows and in their messages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

DAY = 86_400  # seconds


class Counted(Protocol):
    """A line of a cart or an order."""

    @property
    def sku(self) -> str:
        """The product."""

    @property
    def quantity(self) -> int:
        """How many of it."""

    @property
    def price(self) -> int:
        """What the line costs."""


CountedLine = TypeVar("CountedLine", bound=Counted)


@dataclass(frozen=True, kw_only=True)
class Handling:
    """What is special about an order.

    `gift_card` was paid by one, `exchange` by goods that came back. `emailed` has the SKUs of gift cards that
    are bought, `made` the days by the SKUs of what is made to order. `ships`: there is a parcel. Nothing is
    reserved or charged before `released_at`.
    """

    gift_card: int = 0
    exchange: int = 0
    emailed: tuple[str, ...] = ()
    made: Mapping[str, int] = field(default_factory=dict)
    ships: bool = True
    released_at: datetime | None = None

    @property
    def paid(self) -> int:
        """What is paid otherwise than by the customer's payment."""
        return self.gift_card + self.exchange

    @property
    def days(self) -> int:
        """The days within which all is made; 0 if nothing has to be."""
        return max(self.made.values(), default=0)

    def reserved(self, lines: Sequence[CountedLine]) -> list[CountedLine]:
        """Return the lines that the inventory has: not what is e-mailed, nor what is made."""
        return [line for line in lines if line.sku not in {*self.emailed, *self.made}]

    def to_come(self, now: datetime) -> bool:
        """Return whether the order waits for a release."""
        return self.released_at is not None and now < self.released_at

    def of_fewer(self, lines: Sequence[Counted], paid: int, total: int) -> "Handling":
        """Return it if these lines are left: what is above the payment, `paid`, is paid as before."""
        left = {line.sku for line in lines}
        rest = total - min(paid, total)
        return Handling(
            gift_card=0 if self.exchange else rest,
            exchange=rest if self.exchange else 0,
            emailed=tuple(sku for sku in self.emailed if sku in left),
            made={sku: days for sku, days in self.made.items() if sku in left},
            ships=not left <= set(self.emailed),
            released_at=self.released_at,
        )

    def as_json(self, lines: Sequence[Counted], total: int) -> dict[str, Any]:
        """Return JSON; nothing for an ordinary order."""
        return self.fields(lines, total) if self != NONE else {}

    def fields(self, lines: Sequence[Counted], total: int) -> dict[str, Any]:
        """Return JSON with what the steps of the workflow take."""
        return {
            "gift_card": self.gift_card,
            **({"exchange": self.exchange} if self.exchange else {}),
            "to_pay": total - self.paid,
            "emailed": list(self.emailed),
            "gifts": sum(line.price for line in lines if line.sku in self.emailed),
            "made": dict(self.made),
            "finish_within": self.days * DAY or None,
            "reserve": [
                {"sku": line.sku, "quantity": line.quantity} for line in self.reserved(lines)
            ],
            **({} if any(line.sku not in self.emailed for line in lines) else {"ships": False}),
            "released_at": self.released_at.isoformat() if self.released_at else None,
        }


NONE = Handling()


def from_json(value: Mapping[str, Any] | None) -> Handling:
    """Return the handling in a row, or in a message that was checked."""
    if not value:
        return NONE
    at = value["released_at"]
    return Handling(
        gift_card=value["gift_card"],
        exchange=value.get("exchange", 0),
        emailed=tuple(value["emailed"]),
        made=value["made"],
        ships=value.get("ships", True),
        released_at=datetime.fromisoformat(at) if at else None,
    )


def to_pay(data: Mapping[str, Any]) -> int:
    """Return what an order's message leaves to pay beside a gift card or an exchange."""
    left: int = (data.get("handling") or {}).get("to_pay", data["total"])
    return left
