"""Codes of gift cards: 80 random bits, in letters and digits that are not misread. Pure functions."""

import hashlib
import secrets

from .lifecycle.numbers import BASE32, bare

LETTERS = 16


def new_code() -> str:
    """Return a new code, as in "7KQ4-M9XD-2P0A-V5TE"."""
    letters = "".join(secrets.choice(BASE32) for _ in range(LETTERS))
    return "-".join(letters[start : start + 4] for start in range(0, LETTERS, 4))


def digest(code: str) -> str:
    """Return the digest of a code as people type or copy it.

    It has no salt, so that it finds the card: there are too many codes to try them.
    """
    return hashlib.sha256(bare(code).encode()).hexdigest()
