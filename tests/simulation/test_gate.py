"""The gate by itself: any history of requests, answers, failures and waits."""

import math

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from orchestration.gate import GateView, Heard, Limits, again_at, excuses, hear, room, sent
from orchestration.states import GateState

HEARD = st.one_of(
    st.builds(Heard, answered=st.booleans()),
    st.builds(Heard, answered=st.booleans(), retry_after=st.floats(0, 30)),
)


class GateMachine(RuleBasedStateMachine):
    """A gate, the requests that it has let through, and the time."""

    @initialize(
        window=st.integers(1, 40),
        rate=st.one_of(st.none(), st.floats(0.2, 50)),
        calls=st.integers(1, 12),
        failures=st.integers(1, 6),
        share=st.sampled_from([0.2, 0.5, 1.0]),
    )
    def begin(self, window, rate, calls, failures, share):
        self.limits = Limits(
            window=window, rate=rate, calls=calls, failures=min(failures, calls), share=share,
            pause=2.0, pause_cap=20.0,
        )  # fmt: skip
        self.gate, self.now, self.in_flight = GateView(), 1000.0, 0
        self.log: list[tuple[float, int]] = []

    def _room(self):
        return room(self.gate, self.limits, self.in_flight, self.now)

    def _send(self, count):
        self.gate = sent(self.gate, self.limits, count, self.now)
        self.in_flight += count
        self.log.append((self.now, count))

    def _hear(self, outcomes):
        self.in_flight -= len(outcomes)
        self.gate = hear(self.gate, self.limits, outcomes, self.now)

    @rule(seconds=st.sampled_from([0.01, 0.3, 1.0, 4.0, 25.0, 90.0]))
    def time_passes(self, seconds):
        self.now += seconds

    @rule(most=st.integers(0, 50))
    def requests_go(self, most):
        before, places = self.gate, self._room()
        self._send(min(most, places))
        if places:
            assert before.paused_until is None or self.now >= before.paused_until
        if before.state == GateState.SHUT and min(most, places):
            assert self.now >= before.probe_at
            assert self.gate.state == GateState.PROBING
        if before.state == GateState.RAMPING and places:
            assert self.in_flight <= before.allowance

    @precondition(lambda self: self.in_flight)
    @rule(outcomes=st.lists(HEARD, min_size=1, max_size=10))
    def attempts_end(self, outcomes):
        before, outcomes = self.gate, outcomes[: self.in_flight]
        self._hear(outcomes)
        failed = any(not one.answered and one.retry_after is None for one in outcomes)
        if before.state in {GateState.PROBING, GateState.RAMPING} and failed:
            assert self.gate.state == GateState.SHUT
        if not failed and before.state == GateState.OPEN:
            # good news and requests to wait never shut an open gate, unless it was on its edge
            assert self.gate.state == GateState.OPEN or "-" in before.recent
        if before.state == GateState.SHUT:
            assert (self.gate.state, self.gate.probe_at) == (before.state, before.probe_at)

    @invariant()
    def never_more_than_the_window(self):
        assert 0 <= self._room() + self.in_flight <= max(self.limits.window, self.in_flight)
        assert self.in_flight <= self.limits.window

    @invariant()
    def one_probe_at_most(self):
        if self.gate.state == GateState.PROBING:
            assert self.in_flight <= 1
        if self.gate.state == GateState.SHUT:
            assert self._room() <= 1
            assert self.gate.probe_at is not None

    @invariant()
    def what_an_open_gate_forgets(self):
        if self.gate.state == GateState.OPEN:
            assert (self.gate.probe_at, self.gate.trips, self.gate.allowance) == (None, 0, 0)
            assert len(self.gate.recent) <= self.limits.calls
        if self.gate.state == GateState.RAMPING:
            assert 1 < self.gate.allowance < self.limits.window
            assert self.gate.successes < self.gate.allowance
        shut = self.gate.state != GateState.OPEN
        assert excuses(self.gate, math.inf) == shut

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
    def what_waits_is_told_until_when(self):
        at = again_at(self.gate, self.now)
        assert at is None or at > self.now
        if self.gate.state == GateState.SHUT and self.gate.probe_at > self.now:
            assert at is not None

    def teardown(self):
        """Whatever has happened: once the service is well, the gate opens again."""
        if not hasattr(self, "gate"):
            return
        for _ in range(2000):
            if self.gate.state == GateState.OPEN and not self.in_flight:
                return
            if self.in_flight:
                self._hear([Heard(answered=True)] * self.in_flight)
            self.now += 5.0
            if self.gate.state != GateState.OPEN:
                self._send(min(1, self._room()))
        raise AssertionError(f"it never opens: {self.gate}")


TestGate = GateMachine.TestCase
TestGate.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
