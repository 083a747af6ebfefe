"""The fault script in force, with its counts and the partners' base latencies."""

import random
import time
from collections.abc import Callable
from typing import Any

from sandbox.faults import Fault, bad_script, parse_fault, parse_faults, parse_latency
from sandbox.partner import PARTNERS, Json

SCRIPT, FIRED, PASSED = "s", "f", "p"  # tags of journal rows
BASE_LATENCY = 0.01  # seconds


class Script:
    """Which faults befall which requests; survives restarts through the journal."""

    def __init__(self, append: Callable[[tuple[Any, ...]], None]) -> None:
        """Start without faults; `append` is handed each journal row before it takes effect."""
        self._append = append
        self.faults: list[Fault] = []
        self._next = 1
        self.latency: dict[str, float] = {}
        self.reset()

    def reset(self) -> None:
        """Forget all faults and set the base latencies back."""
        self.faults = []
        self.latency = dict.fromkeys(PARTNERS, BASE_LATENCY)

    def restore(self, row: list[Any]) -> None:
        """Apply one journal row of a former run."""
        if row[0] == SCRIPT:
            _, refs, faults, self.latency, *since = row  # of former days: without `since`
            kept = {fault.ref: fault for fault in self.faults}
            parsed = [
                kept.get(ref) or parse_fault(fault, "fault", ref)
                for ref, fault in zip(refs, faults, strict=True)
            ]
            for index, fault in enumerate(parsed):
                fault.since = since[0][index] if since else time.time()
            self._install(parsed)
            return
        for fault in self.faults:
            if fault.ref == row[1]:
                fault.fired += row[0] == FIRED
                fault.passed += row[0] == PASSED

    def replace(self, value: object) -> None:
        """Put {"faults"?: [...], "latency"?: {...}} in force; what is absent stays.

        Raises a 400 Refusal that names the bad field, and changes nothing then.
        """
        if not isinstance(value, dict):
            raise bad_script("body", "must be an object like {'faults': [...]}")
        for name in value:
            if name not in ("faults", "latency"):
                raise bad_script(
                    name, "is not known here; send 'faults' and, if you wish, 'latency'"
                )
        latency = parse_latency(value.get("latency", {}))
        faults = self.faults
        if "faults" in value or not latency:
            faults = parse_faults(value.get("faults"), self._next)
        self._change(faults, self._with(latency))

    def add(self, value: object) -> Fault:
        """Put one more fault at the end of the script; raises a 400 Refusal."""
        fault = parse_fault(value, "fault", self._next)
        self._change([*self.faults, fault], self.latency)
        return fault

    def put(self, partner: str, value: object) -> None:
        """Have one fault befall all of a partner, in place of such a one; raises a 400 Refusal.

        The same fault again changes nothing, unless the first has been used up or counted down.
        """
        fault = parse_fault(value, "fault", self._next)
        others, former = self._split(partner)
        if [one.script() for one in former] == [fault.script()] and (
            fault.times is None or not former[0].fired
        ):
            return
        self._change([*others, fault], self.latency)

    def heal(self, partner: str) -> None:
        """Take away all faults that are the partner's alone."""
        kept = [fault for fault in self.faults if fault.partner != partner]
        if len(kept) < len(self.faults):
            self._change(kept, self.latency)

    def remove(self, ref: int) -> None:
        """Take one fault away, if it is still there."""
        kept = [fault for fault in self.faults if fault.ref != ref]
        if len(kept) < len(self.faults):
            self._change(kept, self.latency)

    def clear(self) -> None:
        """Take all faults away; base latencies stay."""
        self._change([], self.latency)

    def show(self) -> Json:
        """Return the faults with their counts, and the base latencies in seconds."""
        return {"faults": [fault.show() for fault in self.faults], "latency": self.latency}

    def pick(
        self, partner: str, action: str, key: str, order: str | None
    ) -> tuple[float, Fault | None]:
        """Return the seconds to add and the fault to act out for one request, counting it.

        Latency faults add up; of the others the first that fires wins.
        """
        seconds = 0.0
        for fault in self.faults:
            if not fault.matches(partner, action, key, order) or not self._fires(fault):
                continue
            if fault.kind != "latency":
                return seconds, fault
            seconds += fault.params["seconds"]
        return seconds, None

    def _split(self, partner: str) -> tuple[list[Fault], list[Fault]]:
        """Return the faults that stay when one is to befall all of a partner, and those it replaces."""
        former = [fault for fault in self.faults if fault.befalls_all_of(partner)]
        return [fault for fault in self.faults if fault not in former], former

    def _fires(self, fault: Fault) -> bool:
        if fault.passed < fault.skip:
            self._append((PASSED, fault.ref))
            fault.passed += 1
            return False
        if fault.probability < 1 and random.random() >= fault.probability:  # noqa: S311 no secret
            return False
        self._append((FIRED, fault.ref))
        fault.fired += 1
        return True

    def _with(self, latency: dict[str, float]) -> dict[str, float]:
        everyone = latency.pop("*", None)
        base = self.latency if everyone is None else dict.fromkeys(PARTNERS, everyone)
        return base | latency

    def _change(self, faults: list[Fault], latency: dict[str, float]) -> None:
        refs = [fault.ref for fault in faults]
        for fault in faults:
            fault.since = fault.since or round(time.time(), 3)
        since = [fault.since for fault in faults]
        self._append((SCRIPT, refs, [fault.script() for fault in faults], latency, since))
        self.latency = latency
        self._install(faults)

    def _install(self, faults: list[Fault]) -> None:
        self.faults = faults
        self._next = max([self._next, *(fault.ref + 1 for fault in faults)])
