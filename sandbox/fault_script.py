"""The faults in force, with their counts, and the partners' base latencies."""

import json
import random
import time

from sandbox.database import Database
from sandbox.faults import Fault, bad_script, parse_fault, parse_faults, parse_latency
from sandbox.partner import PARTNERS, Json

BASE_LATENCY = 0.01  # seconds
COUNT_FIRED = "UPDATE faults SET fired = fired + 1 WHERE id = ?"
COUNT_PASSED = "UPDATE faults SET passed = passed + 1 WHERE id = ?"


class FaultScript:
    """Decides which requests meet which faults; kept in the database across restarts."""

    def __init__(self, database: Database) -> None:
        """Load the faults of the former run."""
        self._database = database
        self.reset()
        for ref, script, since, fired, passed in database.execute("SELECT * FROM faults"):
            fault = parse_fault(json.loads(script), "fault", ref)
            fault.since, fault.fired, fault.passed = since, fired, passed
            self.faults.append(fault)
        self.latency |= dict(database.execute("SELECT * FROM latencies"))
        last_id = database.execute("SELECT seq FROM sqlite_sequence").fetchone()
        self._next_id = last_id[0] + 1 if last_id else 1

    def reset(self) -> None:
        """Forget all faults and restore the default latencies."""
        self.faults: list[Fault] = []
        self.latency: dict[str, float] = dict.fromkeys(PARTNERS, BASE_LATENCY)

    def replace(self, value: object) -> None:
        """Replace the script by {"faults"?: [...], "latency"?: {...}}; an absent part stays.

        Raises a 400 Refusal that names the bad field, and then changes nothing.
        """
        if not isinstance(value, dict):
            raise bad_script("body", "must be an object like {'faults': [...]}")
        for name in value:
            if name not in ("faults", "latency"):
                raise bad_script(name, "is unknown; send 'faults', 'latency' or both")
        latency = parse_latency(value.get("latency", {}))
        faults = self.faults
        if "faults" in value or not latency:
            faults = parse_faults(value.get("faults"), self._next_id)
        self._change(faults, self._with(latency))

    def add(self, value: object) -> Fault:
        """Append a fault to the script; raises a 400 Refusal."""
        fault = parse_fault(value, "fault", self._next_id)
        self._change([*self.faults, fault], self.latency)
        return fault

    def put(self, partner: str, value: object) -> None:
        """Set the fault for all requests of a partner, and replace the former; raises a 400 Refusal.

        The same fault again changes nothing, unless the former has a limit and has fired.
        """
        fault = parse_fault(value, "fault", self._next_id)
        others, former = self._split(partner)
        if [old.script() for old in former] == [fault.script()] and (
            fault.times is None or not former[0].fired
        ):
            return
        self._change([*others, fault], self.latency)

    def heal(self, partner: str) -> None:
        """Remove all faults that are for this partner only."""
        remaining = [fault for fault in self.faults if fault.partner != partner]
        if len(remaining) < len(self.faults):
            self._change(remaining, self.latency)

    def remove(self, ref: int) -> None:
        """Remove one fault, if it exists."""
        remaining = [fault for fault in self.faults if fault.ref != ref]
        if len(remaining) < len(self.faults):
            self._change(remaining, self.latency)

    def clear(self) -> None:
        """Remove all faults; base latencies stay."""
        self._change([], self.latency)

    def show(self) -> Json:
        """Return the faults with their counts, and the base latencies in seconds."""
        return {"faults": [fault.show() for fault in self.faults], "latency": self.latency}

    def pick(
        self, partner: str, action: str, key: str, order: str | None
    ) -> tuple[float, Fault | None]:
        """Return the seconds to add to one request and the fault to apply to it, and count them.

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
        """Return the faults that stay, and those for all requests of a partner."""
        former = [fault for fault in self.faults if fault.affects_all_of(partner)]
        return [fault for fault in self.faults if fault not in former], former

    def _fires(self, fault: Fault) -> bool:
        if fault.passed < fault.skip:
            self._database.execute(COUNT_PASSED, (fault.ref,))
            fault.passed += 1
            return False
        if fault.probability < 1 and random.random() >= fault.probability:  # noqa: S311 no secret
            return False
        self._database.execute(COUNT_FIRED, (fault.ref,))
        fault.fired += 1
        return True

    def _with(self, latency: dict[str, float]) -> dict[str, float]:
        everyone = latency.pop("*", None)
        base = self.latency if everyone is None else dict.fromkeys(PARTNERS, everyone)
        return base | latency

    def _change(self, faults: list[Fault], latency: dict[str, float]) -> None:
        for fault in faults:
            fault.since = fault.since or round(time.time(), 3)
        with self._database.transaction():
            self._database.execute("DELETE FROM faults")
            self._database.executemany(
                "INSERT INTO faults VALUES (?, ?, ?, ?, ?)",
                [
                    (fault.ref, json.dumps(fault.script()), fault.since, fault.fired, fault.passed)
                    for fault in faults
                ],
            )
            self._database.executemany(
                "INSERT OR REPLACE INTO latencies VALUES (?, ?)", latency.items()
            )
        self.faults, self.latency = faults, latency
        self._next_id = max([self._next_id, *(fault.ref + 1 for fault in faults)])
