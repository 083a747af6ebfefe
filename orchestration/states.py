"""The states of tasks and steps, and every move between them that is legal.

The tables here are the one source: `transitions` writes only these moves, a trigger made from them
refuses the rest in the database, the tests walk them, and `docs/understand/states.md` is drawn from them.
"""

from django.db.models import TextChoices

LOCAL = ""  # the agent of the steps that need none: a scheduler computes these


class TaskState(TextChoices):
    """Where a task stands as a whole."""

    PENDING = "pending", "Pending"  # recorded; no step has been claimed yet
    PROCESSING = "processing", "Processing"  # at least one step was claimed
    PROCESSED = "processed", "Processed"  # every step is processed, skipped, or undone alone
    ERROR = "error", "Error"  # a step is in error: an operator decides
    UNDOING = "undoing", "Undoing"  # undo steps run
    UNDONE = "undone", "Undone"  # every effect was undone


class StepState(TextChoices):
    """The pattern's ProcessState of one record in the state store."""

    WAITING = "waiting", "Waiting"  # for a step it comes after, or for its time
    PENDING = "pending", "Pending"  # may be claimed (when run_after, if any, has passed)
    PROCESSING = "processing", "Processing"  # claimed: an agent has it until complete_by
    AWAITING = (
        "awaiting",
        "Awaiting",
    )  # its result comes later: from a service, a person or a signal
    PROCESSED = "processed", "Processed"  # a valid reply was recorded, or it was done by hand
    ERROR = "error", "Error"  # cannot heal by itself: an operator decides
    SKIPPED = "skipped", "Skipped"  # not needed, by its condition or as a refusal permits
    CANCELLED = "cancelled", "Cancelled"  # never to run: it, or its whole task, is being undone


class Direction(TextChoices):
    """Whether a step does its work or takes back what an earlier one did."""

    DO = "do", "Do"
    UNDO = "undo", "Undo"


class Outcome(TextChoices):
    """How an attempt ended."""

    DONE = "done", "Done"  # the service confirmed the effect
    TRANSIENT = "transient", "Transient"  # the service did nothing, for now: a repeat may succeed
    REJECTED = "rejected", "Rejected"  # the service refused permanently: a repeat would not help
    UNKNOWN = "unknown", "Unknown"  # the effect may have happened: only the same key may be used
    EXPIRED = "expired", "Expired"  # no reply by complete_by: treated as unknown
    ABSENT = "absent", "Absent"  # asked by key: the service knows of no effect
    LATER = "later", "Later"  # the service accepted the request: its result comes later


class PastThreshold(TextChoices):
    """What follows when a step has failed too often (P11)."""

    ERROR = "error", "Error: an operator decides"
    WAIT = "wait", "Wait for an extended time, then retry"
    UNDO = "undo", "Undo the task"


class OnRejection(TextChoices):
    """What follows when the service refuses permanently (P25)."""

    ERROR = "error", "Error: an operator decides"
    WAIT = "wait", "Wait for a fix, then undo the task"
    UNDO = "undo", "Undo the task"


class GateState(TextChoices):
    """The state of an agent's circuit breaker (P28)."""

    CLOSED = "closed", "Closed"  # lets through: the whole window
    OPEN = "open", "Open"  # too many failures: nothing goes until a probe is due
    HALF_OPEN = "half_open", "Half-open"  # probes go, one at a time
    RECOVERING = "recovering", "Recovering"  # it answers again: more and more go


class Health(TextChoices):
    """What the end of an attempt says about the service."""

    GOOD = "good", "Good"  # it answered, with any reply
    BAD = "bad", "Bad"  # it failed, or was silent
    BUSY = "busy", "Busy"  # it asks everybody to come later (429)
    NOTHING = "nothing", "Nothing"  # the trouble lies in the request or the engine


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
        TaskState.PROCESSED: "its last failed step is done by hand, and nothing else is left",
        TaskState.UNDOING: "an undo is asked for, or its failed undo step is resubmitted",
        TaskState.UNDONE: "its last failed undo step is done by hand",
    },
    TaskState.PROCESSED: {
        TaskState.PROCESSING: "the undo of some of its steps is asked for",
        TaskState.UNDOING: "an undo is asked for",
    },
    TaskState.UNDOING: {
        TaskState.UNDONE: "its last undo step is processed",
        TaskState.ERROR: "an undo step ends in error: partly undone",
    },
    TaskState.UNDONE: {TaskState.UNDOING: "proof comes that a cancelled step was done after all"},
}

STEP_MOVES: dict[StepState, dict[StepState, str]] = {
    StepState.WAITING: {
        StepState.PENDING: "the steps it comes after are done, and its time has come",
        StepState.PROCESSING: "the same, and a scheduler claims it at once",
        StepState.AWAITING: "the same, and a person or a signal is to bring its result",
        StepState.SKIPPED: "its condition does not hold",
        StepState.ERROR: "its request cannot be built, or its time is not known",
        StepState.CANCELLED: "its task is undone; for an undo step: nothing was done",
    },
    StepState.PENDING: {
        StepState.PROCESSING: "a scheduler claims it",
        StepState.ERROR: "its task was to be undone for it, and cannot be",
        StepState.CANCELLED: "its task is undone",
    },
    StepState.PROCESSING: {
        StepState.PROCESSED: "a valid reply is recorded",
        StepState.AWAITING: "its service accepted it, or its children are made",
        StepState.PENDING: "it failed or expired below the threshold: retry",
        StepState.SKIPPED: "it was rejected with a code that the workflow passes over",
        StepState.ERROR: "it was rejected, or failed past the threshold",
        StepState.CANCELLED: "its task is undone, and it turns out that nothing was done",
    },
    StepState.AWAITING: {
        StepState.PROCESSED: "its result is reported, or its children have ended",
        StepState.SKIPPED: "it is refused or late, and the workflow passes over that",
        StepState.ERROR: "it is refused, or late",
        StepState.CANCELLED: "its task is undone",
    },
    StepState.ERROR: {
        StepState.PENDING: "an operator resubmits it",
        StepState.AWAITING: "an operator has it awaited again",
        StepState.PROCESSED: "an operator did it by hand",
        StepState.CANCELLED: "its task is undone, as asked for or because it was not fixed in time",
    },
    StepState.PROCESSED: {},
    StepState.SKIPPED: {},
    StepState.CANCELLED: {
        StepState.PENDING: "for an undo step: proof comes that what it undoes was done after all"
    },
}

LIVE_TASK_STATES = (TaskState.PENDING, TaskState.PROCESSING, TaskState.UNDOING)
FINAL_TASK_STATES = (TaskState.PROCESSED, TaskState.UNDONE)
# what comes after a step may start
SATISFIED_STEP_STATES = (StepState.PROCESSED, StepState.SKIPPED)
ENDED_STEP_STATES = (*SATISFIED_STEP_STATES, StepState.CANCELLED)
# the service answered, with any reply
ANSWERED = (Outcome.DONE, Outcome.REJECTED, Outcome.ABSENT, Outcome.LATER)
