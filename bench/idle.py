"""`python -m bench.idle`: memory and processor that `make run` takes when idle. Needs Linux."""

import argparse
import sys
import time
from pathlib import Path

from bench.console import conclude
from bench.measure import memory, run_seconds, tree
from drill.stack import Stack
from drill.waiting import pause, wait_for

MEMORY, PROCESSOR, START = 450.0, 2.0, 6.0  # MB, percent of a core, seconds: the targets
SETTLE = 30.0  # seconds after the last order

LINE = "| {what} | {ready:.1f} | {memory:.0f} | {processor:.1f} | {processes} |"


def main() -> int:
    """Start the stack twice and measure it each time; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each measurement")
    seconds = parser.parse_args().seconds
    stack = Stack("idle", demo=True, NICENESS="10", COPIES="1")  # as `make run`
    print("| `make run`, idle | seconds to ready | MB | % of a core | processes |")
    print("| --- | --: | --: | --: | --: |")
    missed = []
    for what, fresh in (("first start, after its 29 orders", True), ("second start", False)):
        began = time.monotonic()
        stack.start(fresh=fresh)
        ready = time.monotonic() - began
        try:
            if fresh:
                wait_for(lambda: _placed(stack.folder), "the first orders are placed", 120)
            pause(SETTLE)
            figures = _measure(stack, seconds)
        finally:
            stack.stop()
        print(LINE.format(what=what, ready=ready, **figures))
        missed += [f"{what}: {figures['memory']:.0f} MB"] if figures["memory"] > MEMORY else []
        if figures["processor"] > PROCESSOR:
            missed.append(f"{what}: {figures['processor']:.1f} % of a core")
        if not fresh and ready > START:
            missed.append(f"{what}: ready after {ready:.1f} s")
    return conclude(missed)


def _placed(folder: Path) -> bool:
    log = folder / "logs" / "demo.log"
    return log.exists() and "orders placed" in log.read_text()


def _measure(stack: Stack, seconds: float) -> dict[str, float]:
    """Measure all processes of a stack; shared memory counts once."""
    assert stack.process is not None
    pid = stack.process.pid
    before, began = run_seconds(pid), time.monotonic()
    pause(seconds)
    used = (run_seconds(pid) - before) / (time.monotonic() - began)
    return {"memory": memory(pid), "processor": used * 100, "processes": len(tree(pid))}


if __name__ == "__main__":
    sys.exit(main())
