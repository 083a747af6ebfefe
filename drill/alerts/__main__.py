"""`python -m drill.alerts`: provoke the condition of each alert of Prometheus, and see it fire.

A real Prometheus (Debian's package `prometheus`) scrapes a real stack by the rules of deploy/prometheus.
Times are shortened to a twentieth, in `for` and in windows; limits and conditions stay as they are.
"""

import json
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack

from drill.alerts.scenes import ONGOING, SCENES, USUAL_ORDERS
from drill.alerts.watch import Drill
from drill.run import prepare
from drill.stack import Stack
from drill.waiting import pause
from sasweb.stack import folders

DASHBOARDS = folders.PROJECT / "deploy/grafana"
PATIENCE = 240.0  # seconds for the alerts of a scene to fire


def main() -> int:
    """Play all scenes; return 0 if every alert fired, and none before its scene."""
    program = shutil.which("prometheus")
    if program is None:
        raise SystemExit("Prometheus is missing: sudo apt-get install prometheus")
    stack = Stack("alerts").start()
    try:
        prepare(stack)
        drill = Drill(stack, program)
        try:
            return _play(drill)
        finally:
            drill.process.end(signal.SIGINT)
    finally:
        stack.stop()


def _play(drill: Drill) -> int:
    drill.stack.place(USUAL_ORDERS)
    drill.stack.quiet()
    pause(20)  # healthy: long enough for most alerts
    early = drill.fired()
    missing, begun = [], {}
    with ExitStack() as ongoing:
        for place, (name, made, alerts) in enumerate(SCENES):
            begun[name] = time.monotonic()
            if place < ONGOING:
                ongoing.enter_context(made(drill))
                continue
            with made(drill):
                missing += _wait(drill, name, alerts, begun[name])
        for name, _, alerts in SCENES[:ONGOING]:
            missing += _wait(drill, name, alerts, begun[name])
    print(f"fired while all was well: {', '.join(sorted(early)) or 'none'}")
    print(f"did not fire: {', '.join(missing) or 'none'}")
    wrong = _wrong_queries(drill)
    print(f"queries of the dashboards without a result: {', '.join(wrong) or 'none'}")
    return 1 if early or missing else 0


def _wait(drill: Drill, name: str, alerts: Sequence[str], began: float) -> list[str]:
    """Wait until the alerts of a scene, which began then, have fired; return those that have not."""
    left = set(alerts)
    deadline = time.monotonic() + PATIENCE
    while left and time.monotonic() < deadline:
        for alert in left & drill.fired():
            took = time.monotonic() - began
            print(f"{alert:<30} fired within {took:4.0f} s  {name}", flush=True)
            left.remove(alert)
        pause(0.5)
    return sorted(left)


def _wrong_queries(drill: Drill) -> list[str]:
    """Return the panels whose query gives nothing; one that Prometheus refuses raises."""
    empty = []
    for path in sorted(DASHBOARDS.glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", []):
                expression = target["expr"].replace("$__rate_interval", "5m")
                if not drill.query(expression):
                    empty.append(f"{path.stem}: {panel['title']}")
    return empty


if __name__ == "__main__":
    sys.exit(main())
