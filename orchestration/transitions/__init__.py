"""The only writers of the state of tasks and steps (P6, P8, P20–P26); one verb, one module.

Two rules keep any number of writers apart:

- Every move except the claim (pending → processing) is made under the lock of the *task*'s row.
  Whoever holds it may read the states of the task's steps and decide: they cannot change meanwhile
  in any way that matters, as a claim makes nothing done.
- A claim locks the agent's gate, then pending steps that nobody else has locked, then their tasks.
  Those who hold a task's lock never wait for a pending step, so nobody waits in a circle.

Under the lock each write still names the state and the attempt it expects, and a write that does
not land is a normal outcome with a name (`Refusal`), never an exception.
"""

from .claim import claim
from .create import NewTask, create
from .record import Recorded, record
from .recover import Failed, give_up, lock_failed, mark_overdue, retry, wake
from .resubmit import resubmit

__all__ = [
    "Failed",
    "NewTask",
    "Recorded",
    "claim",
    "create",
    "give_up",
    "lock_failed",
    "mark_overdue",
    "record",
    "resubmit",
    "retry",
    "wake",
]
