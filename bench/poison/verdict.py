"""The targets of poison, and which of them are missed. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

SHARE = 0.8  # of the rate without poison
WITHIN = 300.0  # seconds until every poison step is an error, with an incident


@dataclass(frozen=True, kw_only=True)
class Found:
    """What came of one load: its poison by kind and number, and what became of all its tasks.

    `rate` and `healthy` are good tasks a second, with poison among them and without; `error_after`
    is the seconds until all poison was in error, each with an incident; `incidents` are the causes.
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
    blamed: int  # good ones in error

    @property
    def share(self) -> float:
        """Return the good ones' rate as a share of that without poison."""
        return self.rate / self.healthy if self.healthy else 0.0

    def missed(self) -> Sequence[str]:
        """Return a sentence for each target that is missed."""
        what, sentences = f"{self.kind} ({self.poison})", []
        if self.share < SHARE:
            sentences.append(
                f"{what}: the good ones go at {self.share:.2f} of their healthy rate;"
                f" the target is {SHARE:g}."
            )
        if self.done < self.good:
            sentences.append(f"{what}: {self.done} of {self.good} good ones are done.")
        if self.error_after is None:
            sentences.append(
                f"{what}: {self.in_error} of {self.poison} poison steps are in error in time."
            )
        return sentences


def last_line(found: Sequence[Found]) -> str:
    """Return the line that scripts read."""
    worst = min(one.share for one in found)
    times = [one.error_after for one in found]
    within = "never" if None in times else f"{max(filter(None, times), default=0):.0f}s"
    return f"poison min={worst:.2f} error_within={within}"


def markdown(found: Sequence[Found]) -> str:
    """Return a table."""
    head = ["kind", "poison", "good ones of healthy", "done", "in error", "incidents", "after"]
    rows = [
        [
            one.kind,
            str(one.poison),
            f"{one.share:.2f}",
            f"{one.done}/{one.good}" + (f", {one.blamed} in error" if one.blamed else ""),
            f"{one.in_error}/{one.poison}",
            str(one.incidents),
            "never" if one.error_after is None else f"{one.error_after:.0f} s",
        ]
        for one in found
    ]
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
