"""The troubles that a click makes, and a partner's state in words."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from sandbox.faults import Fault
from sandbox.site.frame import count


class Trouble(NamedTuple):
    """What a button does: its label, and the fault that it puts in force."""

    label: str
    fault: dict[str, Any]


TROUBLES = {
    "down": Trouble("Take it down", {"fault": "down"}),
    "unavailable": Trouble("Answer 503", {"fault": "status", "status": 503}),
    "timeout": Trouble("Time out, nothing done", {"fault": "timeout"}),
    "timeout-after": Trouble("Time out after doing it", {"fault": "timeout_after_effect"}),
    "lost": Trouble("Lose the reply", {"fault": "reset_after_effect"}),
    "slow": Trouble("Slow (1 s)", {"fault": "latency", "seconds": 1.0}),
    "refuse": Trouble("Refuse everything", {"fault": "reject"}),
    "limit": Trouble("Rate-limit (429)", {"fault": "too_many_requests", "retry_after": 5}),
}
LIMITS = {"": "until healed", "1": "for 1 request", "3": "for 3 requests", "10": "for 10 requests"}

# Each kind of fault: the partner's state in a word, and what it does.
WORDS = {
    "latency": ("Slow", "takes {seconds:g} s longer"),
    "timeout": ("Silent", "does nothing and says nothing"),
    "timeout_after_effect": ("Silent", "does the work, then says nothing"),
    "slow": ("Slow", "does the work, then takes {seconds:g} s to say so"),
    "status": ("Failing", "does nothing and answers {status}"),
    "status_after_effect": ("Failing", "does the work, then answers {status}"),
    "too_many_requests": ("Rate-limiting", "answers 429 with Retry-After: {retry_after}"),
    "reset": ("Cutting off", "does nothing and cuts the connection"),
    "reset_within_answer": ("Losing replies", "does the work, then cuts its answer in two"),
    "reset_after_effect": ("Losing replies", "does the work, then cuts the connection"),
    "wrong_json": ("Garbled", "does the work, then answers half a JSON text"),
    "wrong_schema": ("Garbled", "does the work, then answers another shape"),
    "html": ("Garbled", "does nothing and answers an HTML page"),
    "ok_with_error": ("Failing", "answers 200 with an error in it"),
    "drip": ("Slow", "answers one byte each {seconds:g} s"),
    "reject": ("Refusing", "refuses for good whatever is new"),
    "down": ("Down", "cuts every connection, unread"),
    "late_effect": ("Late", "cuts the connection, and does the work {seconds:g} s later"),
}
MILD = {"latency", "slow", "too_many_requests", "drip"}


class State(NamedTuple):
    """A partner's state: a word, its tone (good, mild, bad), and the fault that makes it so."""

    word: str
    tone: str
    fault: Fault | None


WORKS = State("Works", "good", None)


def state_of(partner: str, faults: Iterable[Fault]) -> State:
    """Return the state that a partner is in: by the first fault for all, or else by the first."""
    found = [fault for fault in faults if fault.partner in ("*", partner) and not fault.used_up]
    if not found:
        return WORKS
    fault = min(found, key=_partly)
    word = WORDS[fault.kind][0]
    tone = "mild" if _partly(fault) or fault.kind in MILD else "bad"
    return State(word + " at times" if _partly(fault) else word, tone, fault)


def _partly(fault: Fault) -> bool:
    return bool(fault.action != "*" or fault.key or fault.order or fault.probability < 1)


def what_it_does(fault: Fault) -> str:
    """Return what a fault does, in words."""
    return WORDS[fault.kind][1].format(**fault.params)


def when_it_does(fault: Fault) -> str:
    """Return to which requests a fault applies, in words; empty for all."""
    parts = []
    if fault.action != "*":
        parts.append(f"only {fault.action}")
    if fault.key is not None:
        parts.append(f"only keys like {fault.key}")
    if fault.order is not None:
        parts.append(f"only orders like {fault.order}")
    if fault.skip > fault.passed:
        parts.append(f"after {count(fault.skip - fault.passed, 'more request')}")
    if fault.probability < 1:
        parts.append(f"{fault.probability:.0%} of them")
    if fault.times is not None:
        parts.append("used up" if fault.used_up else f"{fault.times - fault.fired:,} left")
    return ", ".join(parts)


def pressed(partner: str, faults: Iterable[Fault]) -> str | None:
    """Return the name of the trouble that a click has made for a partner, if it lasts."""
    for fault in faults:
        if fault.befalls_all_of(partner) and not fault.used_up:
            for name, trouble in TROUBLES.items():
                if fault.script().items() >= trouble.fault.items():
                    return name
    return None
