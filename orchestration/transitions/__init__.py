"""The only writers of the state of tasks and steps (P6, P8, P20–P26); one verb, one module.

Two rules keep any number of writers apart:

- Every move except the claim (pending → processing) is made under the lock of the *task*'s row.
  Whoever holds it may read the states of the task's steps and decide: they cannot change meanwhile
  in any way that matters, as a claim makes nothing done.
- A claim locks the agent's gate, then pending steps that nobody else has locked, then their tasks.
  Those who hold the lock of a task that may still be started never wait for a pending step; an undo
  locks the pending steps first, as a claim does. So nobody waits in a circle.
- Gates come after tasks: whoever has both locked the tasks first.
- What a jump of the clock moves are times, not states: it takes the rows that no one has locked, and
  waits for none.
- What is counted of failures is only ever added (`incidents`): nobody waits for it. Alerts come in the
  order of their causes; a scheduler, which locks gates after them, raises them for rejections, and a
  supervisor, which locks gates before them, for all else: never for the same cause.

Under the lock each write still names the state and the attempt it expects, and a write that does
not land is a normal outcome with a name (`Refusal`), never an exception.
"""

from .changes import NOTHING, Amendment
from .claim import Claimed, claim
from .clock_jump import allow_for_jump, move_times
from .create import NewTask, create
from .gates import close_unasked, database_now, lock_gates, probe_now, write
from .holds import hold, hold_tasks, hold_unserved, let_go, release, release_tasks
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
    suspected,
    undo_for,
    wake,
)
from .resubmit import done_by_hand, resubmit, resubmit_all
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
