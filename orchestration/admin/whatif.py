"""Beside the form of a policy: what its values would have done to what was recorded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from .. import policies
from ..models import Policy
from ..queries.past import Past, past
from ..whatif import Tally, Values, replay

LINES = (
    ("attempts", "attempts would have been made"),
    ("cut_off", "answered, but cut off: later than allowed, or a call longer than its timeout"),
    ("retried", "failed attempts tried again"),
    ("waits", "of these after an extended wait"),
    ("errors", "steps stopped in error"),
    ("undone", "steps whose task would have been undone"),
    ("open", "steps of which the record does not say how they would have ended"),
    ("never_made", "recorded attempts that would never have been made"),
    ("longer", "expired attempts that would have had more time"),
)
ALWAYS = {"attempts", "cut_off", "retried", "errors"}


@dataclass(frozen=True, kw_only=True)
class Line:
    """One figure under the present values, and under those typed in."""

    words: str
    now: int
    then: int

    @property
    def change(self) -> str:
        """Return the difference with its sign, or nothing."""
        return f"{self.then - self.now:+,}" if self.then != self.now else ""


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """What the panel shows: figures, or why there are none."""

    past: Past | None = None
    lines: Sequence[Line] = ()
    wrong: Sequence[str] = ()

    @property
    def same(self) -> bool:
        """Return whether the typed values would have changed nothing."""
        return not any(line.change for line in self.lines)


def what_if(policy: Policy, typed: Any) -> WhatIf:
    """Replay the last days under `policy` as it is, and under the form `typed`."""
    present = values_of(policy)
    if not typed.is_valid():
        return WhatIf(wrong=[message for found in typed.errors.values() for message in found])
    seen = past(policy.agent)
    now, then = replay(seen.stories, present), replay(seen.stories, values_of(typed.instance))
    return WhatIf(past=seen, lines=list(_lines(now, then)))


def _lines(now: Tally, then: Tally) -> list[Line]:
    lines = [
        (name, Line(words=words, now=getattr(now, name), then=getattr(then, name)))
        for name, words in LINES
    ]
    return [line for name, line in lines if name in ALWAYS or line.now or line.then]


def values_of(policy: Policy) -> Values:
    """Return the part of a policy that is replayed."""
    return Values(
        thresholds=policies.thresholds(policy),
        time_allowed=policy.time_allowed,
        call_timeout=policy.call_timeout,
    )


def asked(request: HttpRequest) -> bool:
    """Return whether a form was sent by the button that only asks."""
    return request.method == "POST" and "_what_if" in request.POST
