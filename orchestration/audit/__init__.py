"""The audit: the promises of the engine, checked against its tables and the services' own ledgers.

Each check is one statement over all tasks that returns what breaks an invariant. Nothing is
corrected: a violation says what is wrong with which task, and how to mend it.

- `run` reads the ledgers, checks everything in one snapshot, keeps the result and raises alerts;
- `due` tells the supervisor that it is time for the next run;
- `prepare`, `fill` and `find` are its parts, for whoever brings a connection of their own.
"""

from .books import Unreadable, fill, prepare, store
from .run import HOURLY, Result, due, find, run
from .violation import INVARIANTS, Violation

__all__ = [
    "HOURLY",
    "INVARIANTS",
    "Result",
    "Unreadable",
    "Violation",
    "due",
    "fill",
    "find",
    "prepare",
    "run",
    "store",
]
