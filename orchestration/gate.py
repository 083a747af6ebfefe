"""One gate per agent: how many requests may go now, and what their outcomes do to that (P16, P28).

Pure decisions over plain data; times are seconds on the database's clock. A gate is open; or shut,
after too many failures, until a probe is due; or probing, with exactly one request out; or ramping
up, with a few more after each success, back to the whole window. Beside that, the service may have
asked to be left alone for a while, and the policy may limit the rate.

Sources: Nygard, Release It!, "Circuit Breaker"; RFC 9110, Retry-After; the token bucket is the
leaky bucket as a meter of ITU-T I.371.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .states import GateState

RAMP = {1: 2, 2: 5, 5: 20}  # after that, four times as many at each level
LONGEST_PAUSE = 3600.0  # seconds that a service can ask for in one go
STALE = 60.0  # outcomes older than this say nothing about a service any more


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """The part of an agent's policy that its gate looks at; times in seconds."""

    window: int
    rate: float | None
    calls: int
    failures: int
    share: float
    pause: float
    pause_cap: float


@dataclass(frozen=True, kw_only=True, slots=True)
class GateView:
    """The live state of a gate, as its row has it; times are Unix times."""

    state: str = GateState.OPEN
    recent: str = ""
    heard_at: float | None = None
    probe_at: float | None = None
    trips: int = 0
    allowance: int = 0
    successes: int = 0
    paused_until: float | None = None
    tokens: float = 0.0
    tokens_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Heard:
    """How one attempt ended, as far as the gate cares."""

    answered: bool
    retry_after: float | None = None


def room(gate: GateView, limits: Limits, in_flight: int, now: float) -> int:
    """Return how many more requests may go to an agent that has `in_flight` at work."""
    if gate.paused_until is not None and now < gate.paused_until:
        return 0
    match gate.state:
        case GateState.SHUT:
            due = gate.probe_at is not None and now >= gate.probe_at
            places = 1 - in_flight if due else 0
        case GateState.PROBING:
            # what was out when it shut comes back first; a probe that was lost is sent again
            places = 1 - in_flight
        case GateState.RAMPING:
            places = min(gate.allowance, limits.window) - in_flight
        case _:
            places = limits.window - in_flight
    if limits.rate is not None:
        places = min(places, int(_tokens(gate, limits.rate, now)))
    return max(0, places)


def sent(gate: GateView, limits: Limits, count: int, now: float) -> GateView:
    """Return the gate after `count` requests went out."""
    if count and gate.state == GateState.SHUT:
        gate = replace(gate, state=GateState.PROBING, probe_at=None)
    if count and limits.rate is not None:
        gate = replace(gate, tokens=_tokens(gate, limits.rate, now) - count, tokens_at=now)
    return gate


def hear(gate: GateView, limits: Limits, outcomes: Sequence[Heard], now: float) -> GateView:
    """Return the gate after attempts ended; what comes in while it is shut changes nothing more."""
    asked = max((one.retry_after for one in outcomes if one.retry_after is not None), default=None)
    if asked is not None:
        until = max(gate.paused_until or 0.0, now + min(asked, LONGEST_PAUSE))
        gate = replace(gate, paused_until=until)
    answered = sum(one.answered for one in outcomes)
    # a service that names a time is not in trouble: it is obeyed
    failed = sum(not one.answered and one.retry_after is None for one in outcomes)
    match gate.state:
        case GateState.SHUT:
            return gate
        case GateState.OPEN:
            return _hear_open(gate, limits, outcomes, now)
    if failed:
        return _shut(gate, limits, now)
    if asked is not None and gate.state == GateState.PROBING and not answered:
        return replace(gate, state=GateState.SHUT, probe_at=gate.paused_until)
    return _climb(gate, limits, answered)


def unasked(gate: GateView) -> GateView:
    """Return the gate once nothing waits for it: there is no backlog to let through step by step."""
    return _opened(gate) if gate.state == GateState.RAMPING else gate


def again_at(gate: GateView, now: float) -> float | None:
    """Return when the gate lets more through by itself, if that is a matter of time."""
    times = [gate.paused_until, gate.probe_at]
    return min((at for at in times if at is not None and at > now), default=None)


def excuses(gate: GateView, failed_at: float) -> bool:
    """Return whether a failure at that time is the service's trouble, not the step's."""
    paused = gate.paused_until is not None and failed_at <= gate.paused_until
    return gate.state != GateState.OPEN or paused


def _hear_open(gate: GateView, limits: Limits, outcomes: Sequence[Heard], now: float) -> GateView:
    news = "".join(
        "+" if one.answered else "-" for one in outcomes if one.answered or one.retry_after is None
    )
    stale = gate.heard_at is None or now - gate.heard_at > STALE
    recent = ("" if stale else gate.recent) + news
    gate = replace(gate, recent=recent[-limits.calls :], heard_at=now)
    failures = gate.recent.count("-")
    if failures >= limits.failures and failures >= limits.share * len(gate.recent):
        return _shut(gate, limits, now)
    return gate


def _shut(gate: GateView, limits: Limits, now: float) -> GateView:
    """Shut it: the pause before the next probe doubles with each time it does not come up."""
    pause = min(limits.pause_cap, limits.pause * 2.0 ** min(gate.trips, 30))
    return replace(
        gate,
        state=GateState.SHUT,
        probe_at=now + pause,
        trips=min(gate.trips + 1, 1000),
        recent="",
        allowance=0,
        successes=0,
    )


def _climb(gate: GateView, limits: Limits, answered: int) -> GateView:
    """Allow more after good probes; open the gate when the whole window is allowed."""
    allowance = gate.allowance if gate.state == GateState.RAMPING else 1
    successes = gate.successes + answered
    while successes >= allowance:
        successes -= allowance
        allowance = RAMP.get(allowance, allowance * 4)
        if allowance >= limits.window:
            return _opened(gate)
    if allowance == 1:
        return gate
    return replace(
        gate, state=GateState.RAMPING, probe_at=None, allowance=allowance, successes=successes
    )


def _opened(gate: GateView) -> GateView:
    return GateView(
        heard_at=gate.heard_at,
        paused_until=gate.paused_until,
        tokens=gate.tokens,
        tokens_at=gate.tokens_at,
    )


def _tokens(gate: GateView, rate: float, now: float) -> float:
    """Return the requests that the rate allows now: at most a second's worth is saved up."""
    most = max(1.0, rate)
    if gate.tokens_at is None:
        return most
    return min(most, gate.tokens + max(0.0, now - gate.tokens_at) * rate)
