"""Replay recorded attempts under other thresholds. Pure.

Each step's attempts go through `recovery.decide`, the decision that the supervisor makes, as if the
thresholds had always been these. Unknown results are counted as unknown: those of attempts that were
never made, or that ended too early.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...decisions.recovery import Failure, GiveUp, Retry, Thresholds, Undo, decide
from ...states import Direction, Outcome

JITTER = 0.5  # of waits; the counts do not depend on it


@dataclass(frozen=True, kw_only=True)
class ReplayedPolicy:
    """The part of a policy that is replayed; `own` are the thresholds of steps that have some themselves.

    They are found by workflow and step.
    """

    thresholds: Thresholds
    time_allowed: float
    call_timeout: float
    own: Mapping[tuple[str, str], Thresholds] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RecordedAttempt:
    """One recorded attempt: `seconds` from dispatch to reply, `working` of it inside the agent.

    `resubmitted` says that the step had been resubmitted since the attempt before; `excused`, that the
    failure was not counted as its gate was not open.
    """

    outcome: str
    seconds: float
    working: float | None = None
    calls: int = 1
    code: str = ""
    excused: bool = False
    resubmitted: bool = False


@dataclass(frozen=True, kw_only=True)
class RecordedStep:
    """All recorded attempts of one step, in their order; `place` is its workflow and its name."""

    attempts: Sequence[RecordedAttempt]
    direction: str = Direction.DO
    place: tuple[str, str] = ("", "")


@dataclass(kw_only=True)
class ReplayCounts:
    """The results of a replay over many steps."""

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


def replay(steps: Iterable[RecordedStep], values: ReplayedPolicy) -> ReplayCounts:
    """Replay the steps with these values; return the counts."""
    tally = ReplayCounts()
    for step in steps:
        tally.steps += 1
        _replay(step, values, tally)
    return tally


def _replay(step: RecordedStep, values: ReplayedPolicy, tally: ReplayCounts) -> None:
    thresholds = values.own.get(step.place, values.thresholds)
    count, extended_waits, given_up, again = 0, 0, False, False
    for tried in step.attempts:
        if tried.resubmitted:
            count, extended_waits, given_up = 0, 0, False
        if given_up:
            tally.never_made += 1
            continue
        tally.attempts += 1
        outcome = _outcome(tried, values, tally)
        again = False
        if outcome in {Outcome.DONE, Outcome.REJECTED}:
            continue
        decision = decide(
            thresholds,
            Failure(
                failure_count=count,
                extended_waits=extended_waits,
                outcome=outcome,
                code=tried.code,
                direction=step.direction,
                excused=tried.excused,
            ),
            JITTER,
        )
        match decision:
            case Retry():
                count, extended_waits, again = decision.failure_count, decision.extended_waits, True
                tally.retried += 1
                tally.waits += decision.extended
            case GiveUp():
                given_up = True
                tally.errors += 1
            case Undo():
                given_up = True
                tally.undone += 1
    tally.open += again


def _outcome(tried: RecordedAttempt, values: ReplayedPolicy, tally: ReplayCounts) -> str:
    """Return the outcome that an attempt would have had, as far as it is known."""
    if tried.outcome == Outcome.EXPIRED:
        tally.longer += tried.seconds < values.time_allowed - 0.001
        return tried.outcome
    # only the sum of several calls is known: one of them lasted at least the mean
    call = tried.working / tried.calls if tried.working is not None and tried.calls else 0.0
    if tried.seconds > values.time_allowed or call > values.call_timeout:
        tally.cut_off += 1
        return Outcome.UNKNOWN
    return tried.outcome
