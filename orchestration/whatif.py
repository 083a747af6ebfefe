"""What other thresholds would have done to attempts that were recorded: a replay, purely.

Each step's attempts are gone through again with `recovery.decide`, the same decision that the
supervisor makes, as if the thresholds had been these all along. What cannot be known is counted as
that: how a try would have ended that was never made, or that was given up too early.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .recovery import Failure, GiveUp, Retry, Thresholds, Undo, decide
from .states import Direction, Outcome

CHANCE = 0.5  # the lot that is drawn for a wait: what is counted here does not depend on it


@dataclass(frozen=True, kw_only=True)
class Values:
    """The part of a policy that is replayed."""

    thresholds: Thresholds
    time_allowed: float
    call_timeout: float


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One recorded attempt: `seconds` from dispatch to reply, `working` of it inside the agent.

    `afresh` says that the step had been resubmitted since the attempt before; `excused`, that the
    failure was not counted as its gate was not open.
    """

    outcome: str
    seconds: float
    working: float | None = None
    calls: int = 1
    code: str = ""
    excused: bool = False
    afresh: bool = False


@dataclass(frozen=True, kw_only=True)
class Story:
    """All recorded attempts of one step, in their order."""

    attempts: Sequence[Tried]
    direction: str = Direction.DO


@dataclass(kw_only=True)
class Tally:
    """What would have become of the attempts of many steps."""

    steps: int = 0
    attempts: int = 0
    cut_off: int = 0  # they were answered, and would have been too late
    longer: int = 0  # they expired, and would have had more time
    never_made: int = 0  # their step would have been given up before
    retried: int = 0
    waits: int = 0  # extended ones
    errors: int = 0
    undone: int = 0
    open: int = 0  # steps whose record ends before the replay does


def replay(stories: Iterable[Story], values: Values) -> Tally:
    """Return what these values would have done."""
    tally = Tally()
    for story in stories:
        tally.steps += 1
        _replay(story, values, tally)
    return tally


def _replay(story: Story, values: Values, tally: Tally) -> None:
    count, rounds, given_up, again = 0, 0, False, False
    for tried in story.attempts:
        if tried.afresh:
            count, rounds, given_up = 0, 0, False
        if given_up:
            tally.never_made += 1
            continue
        tally.attempts += 1
        outcome = _outcome(tried, values, tally)
        again = False
        if outcome in {Outcome.DONE, Outcome.REJECTED}:
            continue
        decision = decide(
            values.thresholds,
            Failure(
                failure_count=count,
                rounds=rounds,
                outcome=outcome,
                code=tried.code,
                direction=story.direction,
                excused=tried.excused,
            ),
            CHANCE,
        )
        match decision:
            case Retry():
                count, rounds, again = decision.failure_count, decision.rounds, True
                tally.retried += 1
                tally.waits += decision.extended
            case GiveUp():
                given_up = True
                tally.errors += 1
            case Undo():
                given_up = True
                tally.undone += 1
    tally.open += again


def _outcome(tried: Tried, values: Values, tally: Tally) -> str:
    """Return how an attempt would have ended, as far as that can be known."""
    if tried.outcome == Outcome.EXPIRED:
        tally.longer += tried.seconds < values.time_allowed - 0.001
        return tried.outcome
    # of several calls only their sum is known: one of them lasted at least the mean
    call = tried.working / tried.calls if tried.working is not None and tried.calls else 0.0
    if tried.seconds > values.time_allowed or call > values.call_timeout:
        tally.cut_off += 1
        return Outcome.UNKNOWN
    return tried.outcome
