"""Scripted faults: their fields, and the validation of a script."""

import difflib
import fnmatch
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.partner import PARTNERS, WEBHOOK, actions_of
from sandbox.refusals import Refusal

# Each kind and the parameters it takes with their defaults: `seconds` is a duration, None a
# default that depends on the request.
KINDS: dict[str, dict[str, Any]] = {
    "latency": {"seconds": 1.0},
    "timeout": {"seconds": 60.0},
    "timeout_after_effect": {"seconds": 60.0},
    "slow": {"seconds": 5.0},
    "status": {"status": 500, "retry_after": None},
    "status_after_effect": {"status": 500},
    "too_many_requests": {"retry_after": 1},
    "reset": {},
    "reset_within_answer": {},
    "reset_after_effect": {},
    "wrong_json": {},
    "wrong_schema": {},
    "html": {},
    "ok_with_error": {"code": None, "message": None},
    "drip": {"seconds": 5.0},
    "reject": {"status": None, "code": None, "message": None},
    "down": {},
    "late_effect": {"seconds": 5.0},
    # of webhooks alone
    "lost": {},
    "doubled": {},
    "forged": {},
}
OF_WEBHOOKS = {"lost", "doubled", "forged"}
COMMON = ("partner", "action", "fault", "times", "key", "order", "probability", "skip")
DAY = 86_400
ACTIONS = {partner: actions_of(partner) for partner in PARTNERS}


def _always(_: str) -> bool:
    return True


@dataclass(slots=True)
class Fault:
    """One fault of the script, with the counts of requests that it skipped (`passed`) and hit (`fired`).

    `times` None has no limit; `key` and `order` are globs; `params` belong to the kind; `since` is
    the Unix time in seconds at which it came into force.
    """

    ref: int
    kind: str
    partner: str = "*"
    action: str = "*"
    times: int | None = None
    key: str | None = None
    order: str | None = None
    probability: float = 1.0
    skip: int = 0
    params: dict[str, Any] = field(default_factory=dict)
    since: float = 0.0
    fired: int = 0
    passed: int = 0
    key_matches: Callable[[str], object] = _always
    order_matches: Callable[[str], object] = _always

    def matches(self, partner: str, action: str, key: str, order: str | None) -> bool:
        """Whether the fault applies to a request; the action "*" excludes reads, except for `down`."""
        if self.partner not in ("*", partner) or self.used_up:
            return False
        if (action == WEBHOOK) != (self.kind in OF_WEBHOOKS or self.action == WEBHOOK):
            return False
        if self.action != action and (
            self.action != "*" or (action == "read" and self.kind != "down")
        ):
            return False
        if self.order is not None and (order is None or not self.order_matches(order)):
            return False
        return bool(self.key_matches(key))

    @property
    def used_up(self) -> bool:
        """Whether it has fired `times` times."""
        return self.fired == self.times

    def affects_all_of(self, partner: str) -> bool:
        """Whether it is for this partner only, and for each of its requests."""
        return (self.partner, self.action, self.key, self.order) == (partner, "*", None, None) and (
            self.probability == 1 and self.skip == 0
        )

    def script(self) -> dict[str, Any]:
        """Return the fault as in a script, without counts."""
        shown = {"fault": self.kind, "partner": self.partner, "action": self.action}
        for name in ("times", "key", "order", "probability", "skip"):
            shown[name] = getattr(self, name)
        return shown | self.params

    def show(self) -> dict[str, Any]:
        """Return the fault with its id and counts."""
        return {"id": self.ref, **self.script(), "fired": self.fired, "passed": self.passed}


def parse_faults(value: object, first_ref: int) -> list[Fault]:
    """Read a list of faults; raises a 400 Refusal that names the first bad field."""
    if not isinstance(value, list):
        raise bad_script("faults", f"must be a list of faults, but it is {value!r}")
    return [
        parse_fault(item, f"faults[{index}]", first_ref + index) for index, item in enumerate(value)
    ]


def parse_fault(value: object, where: str, ref: int) -> Fault:
    """Read one fault; raises a 400 Refusal that names the bad field, prefixed by `where`."""
    if not isinstance(value, dict):
        raise bad_script(where, f"must be an object, but it is {value!r}")
    if "fault" not in value:
        raise bad_script(f"{where}.fault", f"is missing; choose one of {', '.join(KINDS)}")
    kind = _choice(value["fault"], f"{where}.fault", KINDS)
    for name in value:
        if name not in COMMON and name not in KINDS[kind]:
            known = [*COMMON, *KINDS[kind]]
            raise bad_script(
                f"{where}.{name}", f"is not a field of the fault '{kind}'{_nearest(name, known)}"
            )
    fault = Fault(ref, kind)
    for name, read in READERS.items():
        if name in value:
            setattr(fault, name, read(value[name], f"{where}.{name}"))
    _check_action(fault, where)
    _check_kind(fault, where)
    for name, default in KINDS[kind].items():
        param = value.get(name)
        fault.params[name] = default if param is None else PARAMS[name](param, f"{where}.{name}")
    _check_status(fault, where)
    return _compile(fault)


def parse_latency(value: object) -> dict[str, float]:
    """Read {partner or "*": seconds}; raises a 400 Refusal that names the bad field."""
    if not isinstance(value, dict):
        raise bad_script("latency", f"must be an object like {{'bench': 0.01}}, not {value!r}")
    latency: dict[str, float] = {}
    for name, seconds in value.items():
        _choice(name, f"latency.{name}", ("*", *PARTNERS))
        latency[name] = _seconds(seconds, f"latency.{name}")
    return latency


def bad_script(name: str, problem: str) -> Refusal:
    """Return the 400 for one wrong field of a fault script."""
    return Refusal(400, "bad_fault", f"{name} {problem}. Nothing was changed.", field=name)


def _compile(fault: Fault) -> Fault:
    if fault.key is not None:
        fault.key_matches = re.compile(fnmatch.translate(fault.key)).match
    if fault.order is not None:
        fault.order_matches = re.compile(fnmatch.translate(fault.order)).match
    return fault


def _check_action(fault: Fault, where: str) -> None:
    known = set().union(*ACTIONS.values()) if fault.partner == "*" else ACTIONS[fault.partner]
    if fault.action != "*" and fault.action not in known:
        raise bad_script(
            f"{where}.action",
            f"'{fault.action}' is not an action of {fault.partner}; choose * or one of "
            f"{', '.join(sorted(known))}",
        )


def _check_kind(fault: Fault, where: str) -> None:
    """Refuse kinds that webhooks cannot meet."""
    if fault.action == WEBHOOK and fault.kind not in OF_WEBHOOKS | {"latency"}:
        kinds = ", ".join(sorted(OF_WEBHOOKS | {"latency"}))
        raise bad_script(f"{where}.fault", f"'{fault.kind}' is not for webhooks; choose {kinds}")


def _check_status(fault: Fault, where: str) -> None:
    status = fault.params.get("status")
    if fault.kind == "reject" and status is not None and not 400 <= status < 500:
        raise bad_script(f"{where}.status", "of a reject must be from 400 to 499")


def _nearest(name: str, known: list[str]) -> str:
    matches = difflib.get_close_matches(name, known, 1)
    return f"; did you mean '{matches[0]}'?" if matches else f"; it takes {', '.join(known)}"


def _choice(value: object, name: str, known: Mapping[str, Any] | tuple[str, ...]) -> str:
    if isinstance(value, str) and value in known:
        return value
    hint = _nearest(str(value), list(known))
    raise bad_script(name, f"is {value!r}, which is unknown{hint}")


def _text(value: object, name: str) -> str:
    if isinstance(value, str) and value:
        return value
    raise bad_script(name, f"must be a non-empty string, but it is {value!r}")


def _glob(value: object, name: str) -> str | None:
    return None if value is None else _text(value, name)


def _whole(least: int, most: int) -> Callable[[object, str], int]:
    def read(value: object, name: str) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        raise bad_script(
            name, f"must be a whole number from {least} to {most}, but it is {value!r}"
        )

    return read


def _number(most: float) -> Callable[[object, str], float]:
    def read(value: object, name: str) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most:
            return float(value)
        raise bad_script(name, f"must be a number from 0 to {most}, but it is {value!r}")

    return read


def _times(value: object, name: str) -> int | None:
    return None if value is None else _whole(1, 10**9)(value, name)


_seconds = _number(DAY)

READERS: dict[str, Callable[[object, str], Any]] = {
    "partner": lambda value, name: _choice(value, name, ("*", *PARTNERS)),
    "action": _text,
    "times": _times,
    "key": _glob,
    "order": _glob,
    "probability": _number(1),
    "skip": _whole(0, 10**9),
}
PARAMS: dict[str, Callable[[object, str], Any]] = {
    "seconds": _seconds,
    "status": _whole(300, 599),
    "retry_after": _whole(0, DAY),
    "code": _text,
    "message": _text,
}
