"""What to do about an attempt that failed or expired: a pure decision (P10, P11, P26)."""

from dataclasses import dataclass

from ..states import Direction, OnRejection, Outcome, PastThreshold
from .backoff import backoff

# An agent says so when a call may have been done, the service has forgotten its key, and it cannot
# be asked: only a person can find out.
KEY_FORGOTTEN = "key_forgotten"

# An instance of an agent says so when its calls fail and its siblings' do not: it is neither the step's
# trouble nor the service's, and another instance will do it.
INSTANCE_SICK = "instance_sick"


# Which key a resubmission uses, and why: only "same" keeps the key.
KEYS = {
    "rejected": "the service rejected the last request",
    "nothing": "an operator confirmed that nothing was done with the old key",
    "changed": "nothing was done with the old key, and a key belongs to one request only",
    "same": "the effect may have happened, and the service recognises a repeated request by its key",
    "unsent": "the request was never sent",
}


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What decides about a step that failed or was rejected; times in seconds.

    Values are of its agent's policy, but for those that the step has for itself (`step_policy`).
    """

    failure_threshold: int
    backoff: float
    backoff_cap: float
    undo_threshold: int
    past_threshold: str = PastThreshold.ERROR
    extended_wait: float = 600.0
    max_extended_waits: int = 3
    retry_after_cap: float = 3600.0
    on_rejection: str = OnRejection.ERROR
    resolve_within: float = 1800.0


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An attempt that did not succeed, and how its step stands."""

    failure_count: int
    extended_waits: int = 0
    outcome: str = Outcome.UNKNOWN
    code: str = ""
    direction: str = Direction.DO
    undoing: bool = False  # it is being undone, or undoes another
    in_doubt: bool = True  # this or an earlier attempt under the key may have had its effect
    excused: bool = False  # the service was in trouble, or asked that this be put off
    put_off: float = 0.0  # seconds for which it asked that


@dataclass(frozen=True, kw_only=True)
class Retry:
    """Make the step pending again, to be claimed after `wait` seconds.

    `counted` says whether the failure is the step's own; `new_key`, that nothing was done under the
    old one and the service has forgotten it; `isolated`, that it goes only while no other such step of
    its agent is in flight.
    """

    failure_count: int
    wait: float
    extended_waits: int = 0
    counted: bool = True
    extended: bool = False
    new_key: bool = False
    isolated: bool = False


@dataclass(frozen=True, kw_only=True)
class GiveUp:
    """Set the step to error and alert an operator: the fault is not transient."""

    failure_count: int


@dataclass(frozen=True, kw_only=True)
class Undo:
    """Undo the whole task."""

    failure_count: int


@dataclass(frozen=True, kw_only=True)
class Cancel:
    """Let the step be: it is being undone, and nothing was done."""


Decision = Retry | GiveUp | Undo | Cancel


def decide(thresholds: Thresholds, failure: Failure, chance: float) -> Decision:
    """Return what follows a failure.

    The wait doubles with each failure up to the cap; `chance` in [0, 1) spreads it over the upper
    half of the interval ("equal jitter"), so that steps that failed together do not return
    together and none returns at once. A failure that is excused is not counted; nor is one of a sick
    instance, after which the step goes to another at once.

    A request may kill the instance that handles it; all that is in flight there ends in silence.
    So a step that stayed silent for half of its chances has the rest of them alone: then only the
    one that kills uses them up.
    """
    backward = failure.undoing or failure.direction == Direction.UNDO
    threshold = thresholds.undo_threshold if backward else thresholds.failure_threshold
    silent = failure.outcome == Outcome.EXPIRED
    put_off = min(failure.put_off, thresholds.retry_after_cap)
    if failure.undoing and failure.direction == Direction.DO and not failure.in_doubt:
        return Cancel()
    absent = failure.outcome == Outcome.ABSENT and not failure.in_doubt  # else it showed since
    if absent or failure.code == INSTANCE_SICK:
        return Retry(
            failure_count=failure.failure_count, extended_waits=failure.extended_waits,
            wait=0.0, counted=False,
            new_key=absent,
        )  # fmt: skip
    if failure.code == KEY_FORGOTTEN:
        return GiveUp(failure_count=failure.failure_count + 1)
    if failure.excused:
        wait = max(put_off, backoff(thresholds.backoff, thresholds.backoff_cap, 1, chance))
        return Retry(
            failure_count=failure.failure_count, extended_waits=failure.extended_waits,
            wait=wait, counted=False,
            isolated=silent and 2 * failure.failure_count >= threshold,
        )  # fmt: skip
    count = failure.failure_count + 1
    if count < threshold:
        wait = max(put_off, backoff(thresholds.backoff, thresholds.backoff_cap, count, chance))
        isolated = silent and 2 * count >= threshold
        return Retry(
            failure_count=count, extended_waits=failure.extended_waits, wait=wait, isolated=isolated
        )
    return _past_threshold(thresholds, failure, chance, backward=backward)


def _past_threshold(
    thresholds: Thresholds, failure: Failure, chance: float, *, backward: bool
) -> Decision:
    count = failure.failure_count + 1
    if backward or thresholds.past_threshold == PastThreshold.ERROR:
        return GiveUp(failure_count=count)
    if thresholds.past_threshold == PastThreshold.UNDO:
        return Undo(failure_count=count)
    if failure.extended_waits >= thresholds.max_extended_waits:
        return GiveUp(failure_count=count)
    wait = thresholds.extended_wait * (1 + chance / 10)  # never less; apart from one another
    return Retry(
        failure_count=0, extended_waits=failure.extended_waits + 1, wait=wait, extended=True
    )


def key_of_resubmission(
    outcome: str, attempt: int, *, in_doubt: bool, changed: bool, nothing_done: bool
) -> str:
    """Return which key a resubmission uses, as a name of `KEYS`.

    `outcome` and `attempt` are of the last attempt; `in_doubt`, that the effect may have happened
    under the present key, for any last outcome; `changed`, that the input is another, and
    `nothing_done`, that a person found out that the attempts had no effect.
    """
    if nothing_done:
        return "nothing"
    if not attempt:
        return "unsent"
    if in_doubt:
        return "same"
    if outcome == Outcome.REJECTED:
        return "rejected"
    return "changed" if changed else "same"


def keeps_key(why: str) -> bool:
    """Return whether a resubmission for that reason goes under the same key as before."""
    return why in {"same", "unsent"}
