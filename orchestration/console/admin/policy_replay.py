"""Beside the form of a policy, or a step's: what its values would have done to what was recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from ... import policies
from ...models import Policy, StepPolicy
from ..statistics.attempt_samples import AttemptSample, sample
from ..statistics.policy_replay import ReplayCounts, ReplayedPolicy, replay

LINES = (
    ("attempts", "attempts"),
    ("cut_off", "attempts cut off by a timeout"),
    ("retried", "retries"),
    ("waits", "of these after an extended wait"),
    ("errors", "steps in error"),
    ("undone", "steps whose task is undone"),
    ("open", "steps with an unknown end"),
    ("never_made", "recorded attempts not made"),
    ("longer", "expired attempts with more time"),
)
ALWAYS = {"attempts", "cut_off", "retried", "errors"}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One figure under the present values, and under those typed in."""

    name: str
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

    sample: AttemptSample | None = None
    lines: Sequence[Comparison] = ()
    wrong: Sequence[str] = ()

    @property
    def same(self) -> bool:
        """Return whether the typed values would have changed nothing."""
        return not any(line.change for line in self.lines)


def what_if(policy: Policy, typed: Any) -> WhatIf:
    """Replay the last days under `policy` as it is, and under the form `typed`."""
    own = policies.own_of_steps(agent=policy.agent)
    present = values_of(policy, own)
    if not typed.is_valid():
        return _wrong(typed)
    return _compared(sample(policy.agent), present, values_of(typed.instance, own))


def what_if_of_step(row: StepPolicy, typed: Any) -> WhatIf:
    """Replay the last days of a step under its values as they are, and under the form `typed`."""
    policy = Policy.objects.filter(agent=row.agent).first() or Policy()
    present = _of_step(policy, row)
    if not typed.is_valid():
        return _wrong(typed)
    seen = sample(row.agent, row.workflow, row.step)
    return _compared(seen, present, _of_step(policy, typed.instance))


def _wrong(typed: Any) -> WhatIf:
    return WhatIf(wrong=[message for messages in typed.errors.values() for message in messages])


def _compared(seen: AttemptSample, present: ReplayedPolicy, typed: ReplayedPolicy) -> WhatIf:
    now, then = replay(seen.steps, present), replay(seen.steps, typed)
    return WhatIf(sample=seen, lines=list(_lines(now, then)))


def _lines(now: ReplayCounts, then: ReplayCounts) -> list[Comparison]:
    lines = [
        (name, Comparison(name=name, words=words, now=getattr(now, name), then=getattr(then, name)))
        for name, words in LINES
    ]
    return [line for name, line in lines if name in ALWAYS or line.now or line.then]


def values_of(
    policy: Policy, own: Mapping[tuple[str, str], Mapping[str, Any]] = policies.NOTHING
) -> ReplayedPolicy:
    """Return the part of a policy that is replayed; `own` are the values that its steps have themselves."""
    return ReplayedPolicy(
        thresholds=policies.thresholds(policy),
        time_allowed=policy.time_allowed,
        call_timeout=policy.call_timeout,
        own={place: policies.thresholds(policy, values) for place, values in own.items()},
    )


def _of_step(policy: Policy, row: StepPolicy) -> ReplayedPolicy:
    return ReplayedPolicy(
        thresholds=policies.thresholds(policy, row.own),
        time_allowed=policy.time_allowed,
        call_timeout=policy.call_timeout,
    )


def asked(request: HttpRequest) -> bool:
    """Return whether a form was sent by the button that only asks."""
    return request.method == "POST" and "_what_if" in request.POST
