"""The number of an order, as people read, type and copy it."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any
from uuid import UUID

NO_NUMBER = re.compile("[^\\w@'\u2019]|_")
BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32: no I, L, O, U to misread


def order_number(order: UUID) -> str:
    """Return an order's number for people: 50 bits of its id, as in "7KQ4M-9XD2P"."""
    bits = order.int >> 78
    letters = "".join(BASE32[(bits >> shift) & 31] for shift in range(45, -1, -5))
    return f"{letters[:5]}-{letters[5:]}"


def as_typed(text: str) -> str:
    """Return an order's number as people type or copy it, in its own form.

    Letters that are misread are put right, and all signs are dropped: hyphens of every kind, "#", a full
    stop. An "@" or an apostrophe stays: with it, the text is an address or a name.
    """
    letters = bare(text)
    return f"{letters[:5]}-{letters[5:]}"


def bare(text: str) -> str:
    """Return the letters and digits of what people type or copy, those that are misread put right."""
    typed = NO_NUMBER.sub("", unicodedata.normalize("NFKC", text).upper())
    return typed.replace("O", "0").replace("I", "1").replace("L", "1")


def number(data: Mapping[str, Any]) -> str:
    """Return the number of a message's order, or "" if its id is invalid."""
    try:
        return order_number(UUID(data["order"]))
    except (KeyError, ValueError, AttributeError, TypeError):
        return ""  # `read` reports the error
