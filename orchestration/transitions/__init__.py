"""The only writers of the state of tasks and steps (P6, P8, P20–P26); one verb, one module.

Two rules keep any number of writers apart:

- Every move is made under the lock of the *task*'s row. Whoever holds it may read the states of the
  task's steps and decide: they cannot change meanwhile, and no claim is at work on them.
- What is locked by another session is not waited for where others would wait behind: a claim passes
  over steps whose task is locked, a scheduler puts back replies to a locked task, a sweep goes on
  past it. People's acts wait for the one task that they are about.
- A claim locks the agent's gate, then tasks and their pending steps that are free (SKIP LOCKED).
- Gates come after tasks, and alerts after gates: whoever has locked an alert waits for no gate. A
  scheduler that raises alerts as it records commits before it claims. A gate is waited for shortly:
  one that is locked for longer is another session's, and passed over until it is free.
- What a jump of the clock moves are times, not states: it takes the rows that no one has locked, and
  waits for none.
- What is counted of failures is only ever added (`incidents`): nobody waits for it. The incident and
  the open alert that a failure refers to are locked without waiting, before anything is written: a
  failure whose cause is locked waits, the rest of its batch does not.

Under the lock each write still names the state and the attempt it expects, and a write that does
not land is a normal outcome with a name (`Refusal`), never an exception.
"""

from .changes import NOTHING, Amendment
from .claim import Claimed, claim
from .clock_jump import allow_for_jump, move_times
from .create import NewTask, create
from .gates import close_unasked, database_now, lock_gates, probe_now, write
from .holds import hold, hold_tasks, hold_unserved, let_go, release, release_tasks
from .lost import expire_lost
from .overdue import mark_overdue
from .record import Recorded, record
from .recover import (
    Failed,
    failed_tasks,
    finish_failed,
    give_up,
    let_be,
    lock_failed,
    retry,
    undo_for,
    wake,
)
from .resubmit import done_by_hand, resubmit, resubmit_all
from .suspicion import suspected
from .undo import undo
from .unmended import undo_unmended, unmended_tasks

__all__ = [
    "NOTHING",
    "Amendment",
    "Claimed",
    "Failed",
    "NewTask",
    "Recorded",
    "allow_for_jump",
    "claim",
    "close_unasked",
    "create",
    "database_now",
    "done_by_hand",
    "expire_lost",
    "failed_tasks",
    "finish_failed",
    "give_up",
    "hold",
    "hold_tasks",
    "hold_unserved",
    "let_be",
    "let_go",
    "lock_failed",
    "lock_gates",
    "mark_overdue",
    "move_times",
    "probe_now",
    "record",
    "release",
    "release_tasks",
    "resubmit",
    "resubmit_all",
    "retry",
    "suspected",
    "undo",
    "undo_for",
    "undo_unmended",
    "unmended_tasks",
    "wake",
    "write",
]
