"""How risky a payment is by the provider's score, from 0 to 100: it goes on, or a person decides.

The provider itself refuses what is above its own limit, as a decline. A payment that the bank had its
customer confirm may have no score: the bank is liable for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

ROLE = "risk"  # a Django group: its members decide


@dataclass(frozen=True)
class Decision:
    """What the person enters who lets an order go on."""

    note: str = ""


def score(charge: object) -> int | None:
    """Return the score of Stripe's charge; events have only the charge's id."""
    outcome = charge.get("outcome") if isinstance(charge, Mapping) else None
    known = outcome.get("risk_score") if isinstance(outcome, Mapping) else None
    return known if isinstance(known, int) else None


def judged(charge: object) -> dict[str, Any]:
    """Return what a result says of the risk: {risk?, review?}."""
    known = score(charge)
    if known is None:
        return {}
    asks = known >= settings.RISK_ASKED_FROM
    return {"risk": known, **({"review": True} if asks else {})}
