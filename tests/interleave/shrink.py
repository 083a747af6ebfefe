"""Look for the plainest run that still goes wrong in the same way.

Hypothesis shrinks what it has drawn itself, so it cannot begin with a run of a seed. The choices of a run are
small numbers, and 0 is the plainest: so parts of them are left out or set to 0 for as long as that
makes the run plainer.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from .run import Run

MOST_RUNS = 200


class Once(Protocol):
    """Runs a seed by the choices of a replay."""

    def __call__(
        self, seed: int, replay: Sequence[int] | None = None, *, trace: bool = False
    ) -> Run:
        """Return the run when it has ended."""


def shrunk(run: Run, once: Once) -> Run:
    """Return the plainest run with the first problem of `run`, with its trace."""
    what = _problem(run)

    def fails(choices: Sequence[int]) -> bool:
        return _problem(once(run.seed, choices)) == what

    plainest = plainer(_trimmed(run.choices.made), fails)
    ended = once(run.seed, plainest, trace=True)
    return ended if _problem(ended) == what else once(run.seed, run.choices.made, trace=True)


def plainer(choices: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> Sequence[int]:
    """Return the plainest choices found that still fail, in `MOST_RUNS` tries at most."""
    best, left = list(choices), MOST_RUNS
    changed = True
    while changed:
        changed = False
        for candidate in _candidates(best):
            if left == 0:
                return best
            if _cost(candidate) < _cost(best):
                left -= 1
                if fails(candidate):
                    best, changed = list(candidate), True
                    break
    return best


def _candidates(choices: Sequence[int]) -> Iterator[list[int]]:
    """Yield choices without a part, with a part of zeros, with a smaller number: the largest parts first."""
    size = len(choices)
    while size:
        for at in range(0, len(choices), size):
            before, behind = list(choices[:at]), list(choices[at + size :])
            yield _trimmed(before + behind)
            if any(choices[at : at + size]):
                yield _trimmed(before + [0] * len(choices[at : at + size]) + behind)
        size //= 2
    for at, number in enumerate(choices):
        for smaller in {number // 2, number - 1} - {number, -1}:
            yield [*choices[:at], smaller, *choices[at + 1 :]]


def _cost(choices: Sequence[int]) -> tuple[int, int, int]:
    return sum(number > 0 for number in choices), len(choices), sum(choices)


def _trimmed(choices: Sequence[int]) -> list[int]:
    """Return choices without the zeros at their end: a replay goes on with them by itself."""
    end = len(choices)
    while end and not choices[end - 1]:
        end -= 1
    return list(choices[:end])


def _problem(run: Run) -> str:
    """Return the first problem of a run, without numbers of tasks and attempts; "" for none."""
    return re.sub(r"\d+", "N", run.wrong[0]) if run.wrong else ""
