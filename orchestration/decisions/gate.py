"""One gate per agent: how many requests may go now, and what their outcomes do to that (P16, P28).

Pure decisions over plain data; times are seconds on the database's clock. A gate has a window, a rate
and a circuit breaker. The breaker is *closed* while all is well; *open*, after too many failures, until
a probe is due; *half-open* while probes go, one at a time; then *recovering*, with an allowance that
grows while the share of failures is low and shrinks when it is not.

Health is a share over a window of time. An outcome belongs to the time at which its request was
*sent*: failures are often slower than successes, and all come in together. What is still out counts
as good, as failures are sometimes quicker, too.

Sources: Nygard, Release It!, "Circuit Breaker"; RFC 9110, Retry-After; additive increase,
multiplicative decrease is of TCP's congestion control (RFC 5681); the token bucket is the leaky bucket
as a meter of ITU-T I.371.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..states import GateState, Health
from .backoff import doubled, refilled

GROWTH = 4  # times as many requests at each level of the recovery
PROBES = 3  # that fail, one after the other, before the next pause: one may have had bad luck
BEHIND = 10  # probes by which a step that failed for its own reason is sent later than its turn
EVERYBODY = 0.2  # share of requests put off by the service (Retry-After) that means all of them
WINDOW = 10.0  # seconds, beside the time that an attempt may take, that health looks back on ...
SLOTS = 20  # ... in this number of parts
FURTHER = 3  # times as far back, as long as there are too few calls to tell


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """The part of an agent's policy that its gate looks at; times in seconds."""

    window: int
    rate: float | None
    time_allowed: float
    calls: int
    failures: int
    share: float
    pause: float
    pause_cap: float
    retry_after_cap: float

    @property
    def span(self) -> float:
        """Return how far health looks back: past what may not have come back yet."""
        return WINDOW + self.time_allowed


class Slot(NamedTuple):
    """Results of the requests sent in a part of the window that begins at `start`.

    `asked` are those that the service put off, by Retry-After.
    """

    start: float
    good: int = 0
    bad: int = 0
    asked: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class GateView:
    """The live state of a gate, as its row has it; times are Unix times.

    Only what was sent after `since` is counted; `answered_at` is when the last request was sent that the
    service answered; `opened_at`, when the breaker opened last.
    """

    state: str = GateState.CLOSED
    since: float | None = None
    slots: Sequence[Slot] = ()
    answered_at: float | None = None
    opened_at: float | None = None
    probe_at: float | None = None
    trips: int = 0
    allowance: int = 0
    paused_until: float | None = None
    tokens: float = 0.0
    tokens_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """How one attempt ended, as far as the gate cares: what it says of the service's health.

    `sent_at` is when the request was sent; `retry_after`, for how many seconds the service asked that
    it be put off.
    """

    health: str
    sent_at: float
    retry_after: float | None = None


def room(gate: GateView, limits: Limits, in_flight: int, now: float) -> int:
    """Return how many more requests may go to an agent that has `in_flight` at work.

    Unless the breaker is closed, only those count that were sent since it opened: one that hangs from
    before must not keep it open.
    """
    if gate.paused_until is not None and now < gate.paused_until:
        return 0
    match gate.state:
        case GateState.OPEN:
            due = gate.probe_at is not None and now >= gate.probe_at
            places = 1 - in_flight if due else 0
        case GateState.HALF_OPEN:
            places = 1 - in_flight  # a probe that was lost is sent again
        case GateState.RECOVERING:
            places = min(gate.allowance, limits.window) - in_flight
        case _:
            places = limits.window - in_flight
    if limits.rate is not None:
        places = min(places, int(_tokens(gate, limits.rate, now)))
    return max(0, places)


def sent(gate: GateView, limits: Limits, count: int, now: float) -> GateView:
    """Return the gate after `count` requests went out."""
    if count and gate.state == GateState.OPEN:
        gate = replace(gate, state=GateState.HALF_OPEN, since=now, slots=(), probe_at=None)
    if count and limits.rate is not None:
        gate = replace(gate, tokens=_tokens(gate, limits.rate, now) - count, tokens_at=now)
    return gate


def observe(
    gate: GateView, limits: Limits, outcomes: Sequence[Observation], now: float, in_flight: int = 0
) -> GateView:
    """Return the gate after attempts ended, while `in_flight` others have not."""
    times = [outcome.sent_at for outcome in outcomes if outcome.health == Health.GOOD]
    if times:
        gate = replace(gate, answered_at=max(*times, gate.answered_at or 0.0))
    counted = [
        outcome
        for outcome in outcomes
        if outcome.health != Health.NOTHING
        and (gate.since is None or outcome.sent_at >= gate.since)
    ]
    if gate.state == GateState.OPEN or not counted:
        return gate
    gate = _noted(gate, limits, counted, now)
    match gate.state:
        case GateState.HALF_OPEN:
            return _judge_probes(gate, limits, now)
        case GateState.RECOVERING:
            return _judge_level(gate, limits, now, in_flight)
    if all(outcome.health == Health.GOOD for outcome in counted):
        return gate  # one too old to count may end, and leave the others a larger share
    seen = _lately(gate.slots, limits, now)
    ill = seen.bad >= limits.failures and _is_ill(seen, limits, in_flight)
    return _opened(gate, limits, now) if ill else gate


def after_idle(gate: GateView, now: float) -> GateView:
    """Return the gate once nothing waits for it: there is no backlog to let through step by step."""
    return _closed(gate, now) if gate.state == GateState.RECOVERING else gate


def again_at(gate: GateView, now: float) -> float | None:
    """Return when the gate lets more through by itself, if that is a matter of time."""
    times = [gate.paused_until, gate.probe_at]
    return min((at for at in times if at is not None and at > now), default=None)


def excuses(gate: GateView) -> bool:
    """Return whether a failure is the service's trouble, as far as the gate knows, not the step's."""
    return gate.state in {GateState.OPEN, GateState.HALF_OPEN}


def answered_since(gate: GateView, failed_at: float | None) -> bool:
    """Return whether the service answered anything that was sent after a step's last failure.

    If so, the step's next failure is its own trouble: it says nothing about the service.
    """
    return failed_at is not None and failed_at < (gate.answered_at or 0.0)


def share_failed(slots: Sequence[Slot], limits: Limits, now: float) -> tuple[int, int]:
    """Return how many attempts failed, of how many that health looks at."""
    seen = _lately(slots, limits, now)
    return seen.bad, seen.good + seen.bad


def _noted(gate: GateView, limits: Limits, counted: Sequence[Observation], now: float) -> GateView:
    """Return the gate with outcomes in their slots, and with the pause that the service asks for."""
    length = limits.span / SLOTS
    slots = {slot.start: slot for slot in gate.slots}
    for outcome in counted:
        start = outcome.sent_at // length * length
        slot = slots.get(start, Slot(start))
        if outcome.health == Health.GOOD:
            slots[start] = slot._replace(good=slot.good + 1)
        elif outcome.retry_after is None:
            slots[start] = slot._replace(bad=slot.bad + 1)
        else:
            slots[start] = slot._replace(asked=slot.asked + 1)
    oldest = now - FURTHER * limits.span
    gate = replace(gate, slots=[slots[start] for start in sorted(slots) if oldest < start <= now])
    waits = [outcome.retry_after for outcome in counted if outcome.retry_after is not None]
    if not waits:
        return gate
    seen = _lately(gate.slots, limits, now)
    most = seen.asked >= limits.failures and seen.asked > EVERYBODY * sum(seen[1:])
    probed = gate.state == GateState.HALF_OPEN
    if most or probed or any(outcome.health == Health.BUSY for outcome in counted):
        until = max(gate.paused_until or 0.0, now + min(max(waits), limits.retry_after_cap))
        return replace(gate, paused_until=until)
    return gate


def _lately(slots: Sequence[Slot], limits: Limits, now: float) -> Slot:
    """Return the sum of the slots that health looks at: further back where the calls are few."""
    seen = Slot(now)
    for slot in reversed(slots):
        enough = seen.good + seen.bad >= limits.calls
        past = now - slot.start
        if past >= FURTHER * limits.span or (past >= limits.span and enough):
            break
        seen = _total((slot, seen))
    return seen


def _is_ill(seen: Slot, limits: Limits, in_flight: int) -> bool:
    return seen.bad > 0 and seen.bad >= limits.share * (seen.good + seen.bad + in_flight)


def _judge_probes(gate: GateView, limits: Limits, now: float) -> GateView:
    """Recover after a good probe; pause again after some bad ones, or for as long as it asks."""
    seen = _total(gate.slots)
    if seen.good:
        return _level(replace(gate, trips=0), limits, GROWTH, now)
    if seen.asked:
        return replace(_opened(gate, limits, now), probe_at=gate.paused_until, trips=gate.trips)
    return _opened(gate, limits, now) if seen.bad >= PROBES else gate


def _judge_level(gate: GateView, limits: Limits, now: float, in_flight: int) -> GateView:
    """Allow more while the share of failures is low, less when it is not; else wait for more news."""
    seen = _total(gate.slots)
    counted = seen.good + seen.bad
    lately = gate.since is not None and now - gate.since < FURTHER * limits.span
    if counted < gate.allowance and (lately or not counted):
        return gate  # with few calls, the span never holds as many outcomes: judged only after FURTHER spans
    if _is_ill(seen, limits, in_flight):
        return _level(gate, limits, gate.allowance // 2, now)
    if _is_ill(seen, limits, 0):
        return gate
    return _level(gate, limits, gate.allowance * GROWTH, now)


def _level(gate: GateView, limits: Limits, allowance: int, now: float) -> GateView:
    """Return the gate at another allowance: from the whole window it is closed, at one it probes."""
    if allowance >= limits.window:
        return _closed(gate, now)
    state = GateState.RECOVERING if allowance > 1 else GateState.HALF_OPEN
    return replace(gate, state=state, since=now, slots=(), allowance=allowance)


def _opened(gate: GateView, limits: Limits, now: float) -> GateView:
    """Open the breaker: the pause before the next probes doubles each time they have failed."""
    pause = doubled(limits.pause, limits.pause_cap, gate.trips + 1)
    return replace(
        gate,
        state=GateState.OPEN,
        since=now,
        slots=(),
        opened_at=now,
        probe_at=now + pause,
        trips=min(gate.trips + 1, 1000),
        allowance=0,
    )


def _closed(gate: GateView, now: float) -> GateView:
    return GateView(
        since=now,
        answered_at=gate.answered_at,
        paused_until=gate.paused_until,
        tokens=gate.tokens,
        tokens_at=gate.tokens_at,
    )


def _total(slots: Sequence[Slot]) -> Slot:
    if not slots:
        return Slot(0.0)  # all that was counted is too old
    good, bad, asked = (sum(column) for column in list(zip(*slots, strict=True))[1:])
    return Slot(slots[0].start, good, bad, asked)


def _tokens(gate: GateView, rate: float, now: float) -> float:
    """Return the requests that the rate allows now: at most a second's worth is saved up."""
    if gate.tokens_at is None:
        return max(1.0, rate)
    return refilled(gate.tokens, now - gate.tokens_at, rate)
