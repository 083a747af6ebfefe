"""The results of poison, and the missed targets. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.console import table

SHARE = 0.8  # of the rate without poison
WITHIN = 300.0  # seconds until every poison step is in error, with an incident


@dataclass(frozen=True, kw_only=True)
class PoisonResult:
    """The result of one load with poison of one kind.

    `rate` and `healthy` are good tasks per second, with poison and without; `error_after` is the seconds
    until all poison was in error, each with an incident; `incidents` is the number of these.
    """

    kind: str
    poison: int
    good: int
    rate: float
    healthy: float
    done: int
    error_after: float | None
    in_error: int
    incidents: int
    blamed: int  # good tasks in error

    @property
    def share(self) -> float:
        """Return the good tasks' rate as a share of that without poison."""
        return self.rate / self.healthy if self.healthy else 0.0

    def missed(self) -> Sequence[str]:
        """Return a sentence for each missed target."""
        what, sentences = f"{self.kind} ({self.poison})", []
        if self.share < SHARE:
            sentences.append(
                f"{what}: the good tasks run at {self.share:.2f} of their healthy rate;"
                f" the target is {SHARE:g}."
            )
        if self.done < self.good:
            sentences.append(f"{what}: {self.done} of {self.good} good tasks are processed.")
        if self.error_after is None:
            sentences.append(
                f"{what}: {self.in_error} of {self.poison} poison steps are in error in time."
            )
        return sentences


def last_line(results: Sequence[PoisonResult]) -> str:
    """Return the line that scripts read."""
    worst = min(result.share for result in results)
    times = [result.error_after for result in results]
    within = "never" if None in times else f"{max(filter(None, times), default=0):.0f}s"
    return f"poison min={worst:.2f} error_within={within}"


def markdown(results: Sequence[PoisonResult]) -> str:
    """Return a table."""
    head = ["kind", "poison", "good tasks of healthy", "done", "in error", "incidents", "after"]
    rows = [
        [
            result.kind,
            str(result.poison),
            f"{result.share:.2f}",
            f"{result.done}/{result.good}"
            + (f", {result.blamed} in error" if result.blamed else ""),
            f"{result.in_error}/{result.poison}",
            str(result.incidents),
            "never" if result.error_after is None else f"{result.error_after:.0f} s",
        ]
        for result in results
    ]
    return table(head, rows)
