"""The states of tasks and steps, and every move between them that is legal.

The tables here are the one source: `transitions` writes only these moves, a trigger made from them
refuses the rest in the database, the tests walk them, and `docs/states.md` is drawn from them.
"""

from collections.abc import Mapping
from typing import TypeVar

from django.db.models import TextChoices

S = TypeVar("S", bound=TextChoices)


class TaskState(TextChoices):
    """Where a task stands as a whole."""

    PENDING = "pending", "Pending"  # recorded; no step has been claimed yet
    PROCESSING = "processing", "Processing"  # at least one step was claimed
    PROCESSED = "processed", "Processed"  # every step is processed or skipped
    ERROR = "error", "Error"  # a step is in error: an operator decides
    UNDOING = "undoing", "Undoing"  # undo steps run
    UNDONE = "undone", "Undone"  # every effect was undone


class StepState(TextChoices):
    """The pattern's ProcessState of one record in the state store."""

    WAITING = "waiting", "Waiting"  # a step it comes after is not done
    PENDING = "pending", "Pending"  # may be claimed (when run_after, if any, has passed)
    PROCESSING = "processing", "Processing"  # claimed: an agent has it until complete_by
    PROCESSED = "processed", "Processed"  # a valid reply was recorded
    ERROR = "error", "Error"  # cannot heal by itself: an operator decides
    SKIPPED = "skipped", "Skipped"  # done by hand
    CANCELLED = "cancelled", "Cancelled"  # never to run: the task is being undone


class Direction(TextChoices):
    """Whether a step does its work or takes back what an earlier one did."""

    DO = "do", "Do"
    UNDO = "undo", "Undo"


class Outcome(TextChoices):
    """How an attempt ended."""

    DONE = "done", "Done"  # the service confirmed the effect
    TRANSIENT = "transient", "Transient"  # the service did nothing, for now: a repeat may succeed
    REJECTED = "rejected", "Rejected"  # the service refused for good: a repeat would not help
    UNKNOWN = "unknown", "Unknown"  # the effect may have happened: only the same key may be used
    EXPIRED = "expired", "Expired"  # no reply by complete_by: as unknown, and nobody said so


TASK_MOVES: dict[TaskState, dict[TaskState, str]] = {
    TaskState.PENDING: {
        TaskState.PROCESSING: "its first step is claimed",
        TaskState.ERROR: "a step ends in error before any was claimed",
        TaskState.UNDOING: "an undo is asked for",
    },
    TaskState.PROCESSING: {
        TaskState.PROCESSED: "its last step is processed",
        TaskState.ERROR: "a step ends in error",
        TaskState.UNDOING: "an undo is asked for",
    },
    TaskState.ERROR: {
        TaskState.PROCESSING: "its last failed step is resubmitted or done by hand",
        TaskState.UNDOING: "an undo is asked for",
    },
    TaskState.PROCESSED: {TaskState.UNDOING: "an undo is asked for"},
    TaskState.UNDOING: {
        TaskState.UNDONE: "its last undo step is processed",
        TaskState.ERROR: "an undo step ends in error: partly undone",
    },
    TaskState.UNDONE: {},
}

STEP_MOVES: dict[StepState, dict[StepState, str]] = {
    StepState.WAITING: {
        StepState.PENDING: "the steps it comes after are done",
        StepState.ERROR: "its request cannot be built",
        StepState.CANCELLED: "its task is undone",
    },
    StepState.PENDING: {
        StepState.PROCESSING: "a scheduler claims it",
        StepState.CANCELLED: "its task is undone",
    },
    StepState.PROCESSING: {
        StepState.PROCESSED: "a valid reply is recorded",
        StepState.PENDING: "it failed or expired below the threshold: retry",
        StepState.ERROR: "it was rejected, or failed past the threshold",
    },
    StepState.ERROR: {
        StepState.PENDING: "an operator resubmits it",
        StepState.SKIPPED: "an operator did it by hand",
        StepState.CANCELLED: "its task is undone",
    },
    StepState.PROCESSED: {},
    StepState.SKIPPED: {},
    StepState.CANCELLED: {},
}

LIVE_TASK_STATES = (TaskState.PENDING, TaskState.PROCESSING, TaskState.UNDOING)
FINAL_TASK_STATES = (TaskState.PROCESSED, TaskState.UNDONE)
DONE_STEP_STATES = (StepState.PROCESSED, StepState.SKIPPED)


def illegal_moves(moves: Mapping[S, Mapping[S, str]]) -> list[tuple[S, S]]:
    """Every pair of different states that `moves` does not allow."""
    return [
        (before, after)
        for before in moves
        for after in moves
        if before != after and after not in moves[before]
    ]
