"""The results of goodput, and the missed targets. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

RATIO = 0.95  # of the same load's rate without a breaker
SHARE, UP_TO = 0.9, 0.2  # of (1 - p) of the healthy rate, for p up to
TIMELY, WITHIN = 0.95, 20.0  # share of tasks that end within these seconds
DONE, SECONDS = 0.8, 45.0  # of a backlog, after the end of a long outage
PROBES = 1  # calls at once while an outage lasts
BUSY = 0.9  # of the healthy rate, while 5 % of the answers are 503 with Retry-After: 1
BESIDE, PROMPT = 0.99, 5.0  # share of the other agent's tasks that end within these seconds
OFTEN = 0.35  # the failure rate up to which the targets for times apply


@dataclass(kw_only=True)
class Pair:
    """Tasks per second of a load with a breaker (`on`) and without (`off`); `errors` of both."""

    on: float
    off: float
    errors: int = 0

    @property
    def ratio(self) -> float:
        """Return the rate with a breaker over the rate without."""
        return self.on / self.off if self.off else 0.0


@dataclass(kw_only=True)
class Outage:
    """A long outage: seconds until DONE of the backlog had ended, and concurrent probes."""

    seconds: float | None
    probes: int


@dataclass(kw_only=True)
class RateResult:
    """The measurements at one failure rate."""

    failing: float
    healthy: float = 0.0  # tasks per second of a healthy service, beside the steady load
    steady: Pair | None = None
    recovered: Pair | None = None  # after a short outage
    # seconds from the end of the outage to the full rate, with the breaker
    full_after: float | None = None
    timely: float | None = None
    outage: Outage | None = None

    @property
    def ratios(self) -> list[float]:
        """Return the ratios to the same load without a breaker."""
        return [pair.ratio for pair in (self.steady, self.recovered) if pair]

    def share(self, rate: float) -> float:
        """Return a rate as a share of the failing service's capacity."""
        return rate / ((1 - self.failing) * self.healthy)


@dataclass(kw_only=True)
class Results:
    """All measurements: by failure rate, and beside them. Rates are tasks per second."""

    by_rate: Mapping[float, RateResult] = field(default_factory=dict)
    # with answers that ask for a pause (on), and at a healthy service (off)
    busy: Pair | None = None
    beside: float = 0.0
    beside_p95: float = 0.0  # seconds from the time a task was due to its end
    loads: Sequence[float] = ()  # averages of the machine, before and after

    @property
    def worst(self) -> float:
        """Return the worst ratio to the same load without a breaker."""
        return min(
            (ratio for result in self.by_rate.values() for ratio in result.ratios), default=0.0
        )

    @property
    def timely(self) -> float:
        """Return the worst share of timely tasks where a target applies."""
        shares = [result.timely for result in self._often() if result.timely is not None]
        return min(shares, default=0.0)

    def last_line(self) -> str:
        """Return the line that scripts read."""
        return f"goodput min={self.worst:.2f} timely={self.timely:.2f}"

    def missed(self) -> Sequence[str]:
        """Return a sentence for each missed target."""
        return [
            *(
                sentence
                for result in self.by_rate.values()
                for sentence in self._missed_ratios(result)
            ),
            *(sentence for result in self._often() for sentence in _missed_times(result)),
            *self._missed_beside(),
        ]

    def _often(self) -> list[RateResult]:
        return [result for result in self.by_rate.values() if result.failing <= OFTEN]

    def _missed_ratios(self, result: RateResult) -> list[str]:
        at, sentences = f"At {result.failing:.0%} failures", []
        loads = {"steadily": result.steady, "after an outage": result.recovered}
        for when, pair in loads.items():
            if pair and pair.ratio < RATIO:
                sentences.append(
                    f"{at}, {when}, the rate is {pair.ratio:.2f} of that without a breaker;"
                    f" the target is {RATIO:g}."
                )
            if pair and pair.errors:
                sentences.append(
                    f"{at}, {when}, {pair.errors} tasks are in error; the target is 0."
                )
        if result.steady and result.failing <= UP_TO:
            share = result.share(result.steady.on)
            if share < SHARE:
                sentences.append(
                    f"{at} the rate is {share:.2f} of (1 - p) of the healthy rate;"
                    f" the target is {SHARE:g}."
                )
        return sentences

    def _missed_beside(self) -> list[str]:
        sentences = []
        if self.busy and self.busy.ratio < BUSY:
            sentences.append(
                f"With 5 % of answers 503 with Retry-After the rate is"
                f" {self.busy.ratio:.2f} of the healthy one; the target is {BUSY:g}."
            )
        if self.beside < BESIDE:
            sentences.append(
                f"The agent beside did {self.beside:.1%} of its tasks within {PROMPT:g} s;"
                f" the target is {BESIDE:.0%}."
            )
        return sentences


def _missed_times(result: RateResult) -> list[str]:
    at, sentences = f"At {result.failing:.0%} failures", []
    if result.timely is not None and result.timely < TIMELY:
        sentences.append(
            f"{at} {result.timely:.2f} of the tasks are done within {WITHIN:g} s;"
            f" the target is {TIMELY:g}."
        )
    if result.outage and (result.outage.seconds is None or result.outage.seconds > SECONDS):
        took = "never" if result.outage.seconds is None else f"after {result.outage.seconds:.0f} s"
        sentences.append(
            f"{at} {DONE:.0%} of a backlog are done {took}; the target is {SECONDS:g} s"
            " after the end of an outage."
        )
    if result.outage and result.outage.probes > PROBES:
        sentences.append(
            f"{at} there were {result.outage.probes} calls at once during an outage;"
            f" the target is {PROBES}."
        )
    return sentences
