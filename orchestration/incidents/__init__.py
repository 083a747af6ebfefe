"""Incidents: failures grouped by cause, counted as they happen, and where each cause stands.

Whoever writes that a step failed, is in error, or no longer is, or what its task is worth, adds a
tally in the same transaction (`count`, `suffer`, `relieve`, `revalued`): rows of its own, so that
however many fail at once, nobody waits for another. The leading supervisor adds the tallies up with
each sweep (`fold`), and is the only one to say where an incident stands, but for what people do
about it (`acts`).
"""

from .acts import Conflict, acknowledge, assign, mute, note, resolve, unmute
from .counting import Failure, count, lock, relieve, revalued, suffer
from .folding import fold
from .standing import Facts, standing

__all__ = [
    "Conflict",
    "Facts",
    "Failure",
    "acknowledge",
    "assign",
    "count",
    "fold",
    "lock",
    "mute",
    "note",
    "relieve",
    "resolve",
    "revalued",
    "standing",
    "suffer",
    "unmute",
]
