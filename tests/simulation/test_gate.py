"""Property test of the gate: any history of requests, answers, failures and waits."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from orchestration.decisions.gate import (
    FURTHER,
    SLOTS,
    GateView,
    Limits,
    Observation,
    again_at,
    excuses,
    observe,
    room,
    sent,
)
from orchestration.states import GateState, Health

HEALTH = st.sampled_from(Health.values)


class GateMachine(RuleBasedStateMachine):
    """A gate, the requests that it has let through, and the time."""

    @initialize(
        window=st.integers(1, 100),
        rate=st.one_of(st.none(), st.floats(0.2, 50)),
        calls=st.integers(1, 12),
        failures=st.integers(1, 6),
        share=st.sampled_from([0.2, 0.5, 1.0]),
    )
    def begin(self, window, rate, calls, failures, share):
        self.limits = Limits(
            window=window, rate=rate, time_allowed=5.0, calls=calls, failures=min(failures, calls),
            share=share, pause=2.0, pause_cap=20.0, retry_after_cap=3600.0,
        )  # fmt: skip
        self.gate, self.now = GateView(), 1000.0
        self.out: list[float] = []  # when what is in flight was sent
        self.log: list[tuple[float, int]] = []

    def _counted(self):
        """Return the number of requests in flight that the gate counts."""
        if self.gate.state == GateState.CLOSED:
            return len(self.out)
        return sum(at >= self.gate.opened_at for at in self.out)

    def _room(self):
        return room(self.gate, self.limits, self._counted(), self.now)

    def _send(self, count):
        self.gate = sent(self.gate, self.limits, count, self.now)
        self.out += [self.now] * count
        self.log.append((self.now, count))

    def _hear(self, outcomes):
        self.gate = observe(self.gate, self.limits, outcomes, self.now, len(self.out))

    @rule(seconds=st.sampled_from([0.01, 0.3, 1.0, 4.0, 25.0, 90.0]))
    def time_passes(self, seconds):
        self.now += seconds

    @rule(most=st.integers(0, 50))
    def requests_go(self, most):
        before, places = self.gate, self._room()
        self._send(min(most, places))
        if places:
            assert before.paused_until is None or self.now >= before.paused_until
        if before.state == GateState.OPEN and min(most, places):
            assert self.now >= before.probe_at
            assert self.gate.state == GateState.HALF_OPEN
        if before.state == GateState.RECOVERING and places:
            assert self._counted() <= before.allowance

    @precondition(lambda self: self.out)
    @rule(
        health=st.lists(HEALTH, min_size=1, max_size=10),
        retry_after=st.one_of(st.none(), st.floats(0, 30)),
        newest=st.booleans(),
    )
    def attempts_end(self, health, retry_after, newest):
        before, outcomes = self.gate, []
        for value in health[: len(self.out)]:
            sent_at = self.out.pop(-1 if newest else 0)
            outcomes.append(Observation(health=value, sent_at=sent_at, retry_after=retry_after))
        self._hear(outcomes)
        bad = any(outcome.health in {Health.BAD, Health.BUSY} for outcome in outcomes)
        if before.state == GateState.OPEN:
            assert replace(self.gate, answered_at=None) == replace(before, answered_at=None)
        if before.state == GateState.RECOVERING:
            assert self.gate.state != GateState.OPEN  # only a failed probe opens it again
        if self.gate.state == GateState.OPEN and before.state != GateState.OPEN:
            assert bad
        if all(outcome.health == Health.NOTHING for outcome in outcomes):
            assert self.gate == before

    @invariant()
    def never_more_than_the_window(self):
        if self.gate.state == GateState.CLOSED:
            assert self._room() + len(self.out) <= max(self.limits.window, len(self.out))
        assert 0 <= self._room() + self._counted() <= max(self.limits.window, self._counted())

    @invariant()
    def one_probe_at_most(self):
        if self.gate.state == GateState.OPEN:
            assert self._room() <= 1
            assert self.gate.probe_at is not None
            assert self.gate.probe_at - self.now <= max(
                20.0, (self.gate.paused_until or 0) - self.now
            )

    @invariant()
    def states_keep_their_invariants(self):
        if self.gate.state == GateState.CLOSED:
            assert (self.gate.probe_at, self.gate.trips, self.gate.allowance) == (None, 0, 0)
        if self.gate.state == GateState.RECOVERING:
            assert 1 < self.gate.allowance < self.limits.window
        assert len(self.gate.slots) <= FURTHER * SLOTS + 1
        assert excuses(self.gate) == (self.gate.state in {GateState.OPEN, GateState.HALF_OPEN})

    @invariant()
    def the_rate_holds_over_any_time(self):
        rate = self.limits.rate
        if rate is None:
            return
        total = 0
        for at, count in reversed(self.log):
            total += count
            assert total <= max(1.0, rate) + rate * (self.now - at) + 1e-6

    @invariant()
    def next_time_is_in_the_future(self):
        at = again_at(self.gate, self.now)
        assert at is None or at > self.now
        if self.gate.state == GateState.OPEN and self.gate.probe_at > self.now:
            assert at is not None

    def teardown(self):
        """Check that the breaker closes after any history, once the service is healthy."""
        if not hasattr(self, "gate"):
            return
        for _ in range(2000):
            if self.gate.state == GateState.CLOSED:
                return
            out, self.out = self.out, []
            self._hear([Observation(health=Health.GOOD, sent_at=at) for at in out])
            self.now += 5.0
            if self.gate.state != GateState.CLOSED:
                self._send(self._room())
        raise AssertionError(f"it never closes: {self.gate}")


TestGate = GateMachine.TestCase
TestGate.settings = settings(max_examples=150, stateful_step_count=40)
