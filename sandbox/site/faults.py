"""Faults on the page: the presets of the buttons, and descriptions of faults and partners."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from sandbox.faults import Fault
from sandbox.site.layout import count


class Preset(NamedTuple):
    """A button: its label, and the fault that it puts in force."""

    label: str
    fault: dict[str, Any]


PRESETS = {
    "down": Preset("Take it down", {"fault": "down"}),
    "unavailable": Preset("Answer 503", {"fault": "status", "status": 503}),
    "timeout": Preset("Time out without effect", {"fault": "timeout"}),
    "timeout-after": Preset("Time out after effect", {"fault": "timeout_after_effect"}),
    "lost": Preset("Lose the reply", {"fault": "reset_after_effect"}),
    "slow": Preset("Slow (1 s)", {"fault": "latency", "seconds": 1.0}),
    "refuse": Preset("Refuse everything", {"fault": "reject"}),
    "limit": Preset("Rate-limit (429)", {"fault": "too_many_requests", "retry_after": 5}),
}
LIMITS = {"": "until healed", "1": "for 1 request", "3": "for 3 requests", "10": "for 10 requests"}

# Each kind of fault: the partner's state, and what the partner does.
DESCRIPTIONS = {
    "latency": ("Slow", "takes {seconds:g} s longer"),
    "timeout": ("Silent", "does nothing and does not answer"),
    "timeout_after_effect": ("Silent", "does the work, then does not answer"),
    "slow": ("Slow", "does the work, then answers {seconds:g} s later"),
    "status": ("Failing", "does nothing and answers {status}"),
    "status_after_effect": ("Failing", "does the work, then answers {status}"),
    "too_many_requests": ("Rate-limiting", "answers 429 with Retry-After: {retry_after}"),
    "reset": ("Cutting off", "does nothing and cuts the connection"),
    "reset_within_answer": (
        "Losing replies",
        "does the work, then cuts the connection within the answer",
    ),
    "reset_after_effect": ("Losing replies", "does the work, then cuts the connection"),
    "wrong_json": ("Garbled", "does the work, then answers half of the JSON"),
    "wrong_schema": ("Garbled", "does the work, then answers JSON of another schema"),
    "html": ("Garbled", "does nothing and answers an HTML page"),
    "ok_with_error": ("Failing", "does nothing and answers 200 with an error inside"),
    "drip": ("Slow", "does the work, then sends one byte every {seconds:g} s"),
    "reject": ("Refusing", "refuses every new request permanently"),
    "down": ("Down", "cuts every connection without reading the request"),
    "late_effect": ("Late", "cuts the connection, then does the work {seconds:g} s later"),
    "lost": ("Not reporting", "reports nothing by webhook"),
    "doubled": ("Repeating reports", "sends every webhook twice"),
    "forged": ("Forged reports", "has its webhooks replaced by forged ones"),
}
MILD = {"latency", "slow", "too_many_requests", "drip", "lost", "doubled", "forged"}


class PartnerState(NamedTuple):
    """A partner's state: a word, a tone (good, mild, bad), and the fault that causes it."""

    word: str
    tone: str
    fault: Fault | None


WORKS = PartnerState("Works", "good", None)


def partner_state(partner: str, faults: Iterable[Fault]) -> PartnerState:
    """Return a partner's state: by the first fault that affects all its requests, or the first."""
    active = [fault for fault in faults if fault.partner in ("*", partner) and not fault.used_up]
    if not active:
        return WORKS
    fault = min(active, key=_is_partial)
    word = DESCRIPTIONS[fault.kind][0]
    tone = "mild" if _is_partial(fault) or fault.kind in MILD else "bad"
    return PartnerState(word + " at times" if _is_partial(fault) else word, tone, fault)


def _is_partial(fault: Fault) -> bool:
    return bool(fault.action != "*" or fault.key or fault.order or fault.probability < 1)


def describe_effect(fault: Fault) -> str:
    """Describe a partner with this fault, for example "does nothing and answers 503"."""
    return DESCRIPTIONS[fault.kind][1].format(**fault.params)


def describe_scope(fault: Fault) -> str:
    """Return which requests a fault affects, for example "only send, 2 left"; empty for all."""
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
        parts.append(f"{fault.probability:.0%} of requests")
    if fault.times is not None:
        parts.append("used up" if fault.used_up else f"{fault.times - fault.fired:,} left")
    return ", ".join(parts)


def active_preset(partner: str, faults: Iterable[Fault]) -> str | None:
    """Return the name of the preset that is in force for a partner."""
    for fault in faults:
        if fault.affects_all_of(partner) and not fault.used_up:
            for name, preset in PRESETS.items():
                if fault.script().items() >= preset.fault.items():
                    return name
    return None
