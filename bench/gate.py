"""`python -m bench.gate`: where one agent's gate saturates, by a simulation of many schedulers.

Each takes up to a batch of the replies that have arrived, works on them, waits for the gate's row, holds it
until its commit, and sends as many requests; the service answers each after its latency. A turn takes what
`make size` measured. Each scheduler has a core of its own: the gate is all they share.
"""

import argparse
import heapq
import random
import sys
from collections import deque
from dataclasses import dataclass

from bench.console import table
from orchestration.conf import BATCH_SIZE
from orchestration.console.statistics.sizing import MEASURED, Cost

SCHEDULERS = (1, 2, 4, 8, 16, 32)
WINDOWS = (100, 1_000, 10_000)
LATENCY = 0.1  # seconds of an answer, give or take half
SPREAD = 0.2  # by which a turn's times vary


@dataclass(frozen=True, kw_only=True)
class GateFigures:
    """Steps per second, replies of a turn, ms waited for the gate in a turn, share of time it was locked."""

    rate: float
    batch: float
    waited: float
    locked: float


class Gate:
    """The simulation: events are replies that arrive, and schedulers that want or leave the gate."""

    def __init__(
        self,
        schedulers: int,
        window: int,
        *,
        before: Cost = MEASURED.turn_before,
        held: Cost = MEASURED.turn_held,
        seed: int = 1,
    ) -> None:
        self.before, self.held = before, held
        self.chance = random.Random(seed)  # noqa: S311 - repeatable
        self.inbox = 0
        self.idle = schedulers
        self.queue: deque[tuple[float, int]] = (
            deque()
        )  # when each asked for the gate, with its replies
        self.locked = False
        self.events: list[tuple[float, int, str, int]] = []
        self.number = 0
        self.turns = self.done = 0
        self.waited = self.busy = 0.0
        for _ in range(window):
            self._at(self._vary(LATENCY, 0.5), "reply")

    def run(self, seconds: float) -> GateFigures:
        """Simulate; return what was found in the second half, once it has settled."""
        for until in (seconds / 2, seconds):
            self.turns = self.done = 0
            self.waited = self.busy = 0.0
            while self.events[0][0] < until:
                now, _, kind, replies = heapq.heappop(self.events)
                getattr(self, f"_{kind}")(now, replies)
        return GateFigures(
            rate=2 * self.done / seconds,
            batch=self.done / self.turns,
            waited=self.waited / self.turns * 1000,
            locked=2 * self.busy / seconds,
        )

    def _reply(self, now: float, _: int) -> None:
        self.inbox += 1
        self._begin(now)

    def _begin(self, now: float) -> None:
        """Let an idle scheduler take the waiting replies."""
        if self.idle and self.inbox:
            replies = min(self.inbox, BATCH_SIZE)
            self.inbox -= replies
            self.idle -= 1
            self._at(now + self._vary(self.before.of(replies) / 1000, SPREAD), "ask", replies)

    def _ask(self, now: float, replies: int) -> None:
        self.queue.append((now, replies))
        self._lock(now)

    def _lock(self, now: float) -> None:
        if self.queue and not self.locked:
            asked, replies = self.queue.popleft()
            self.locked = True
            holds = self._vary(self.held.of(replies) / 1000, SPREAD)
            self.waited += now - asked
            self.busy += holds
            self._at(now + holds, "leave", replies)

    def _leave(self, now: float, replies: int) -> None:
        self.locked = False
        self.turns += 1
        self.done += replies
        self.idle += 1
        for _ in range(replies):
            self._at(now + self._vary(LATENCY, 0.5), "reply")
        self._lock(now)
        self._begin(now)

    def _at(self, moment: float, kind: str, replies: int = 0) -> None:
        self.number += 1
        heapq.heappush(self.events, (moment, self.number, kind, replies))

    def _vary(self, value: float, share: float) -> float:
        return value * (1 + share * (2 * self.chance.random() - 1))


def main() -> int:
    """Simulate every number of schedulers with every window; print the table."""
    options = parse_options()
    rows = []
    for window in WINDOWS:
        for schedulers in SCHEDULERS:
            figures = Gate(schedulers, window).run(options.seconds)
            rows.append(
                [
                    f"{window:,}",
                    str(schedulers),
                    f"{figures.rate:,.0f}",
                    f"{figures.batch:.0f}",
                    f"{figures.waited:.1f}",
                    f"{figures.locked:.0%}",
                ]
            )
    head = ["window", "schedulers", "steps/s", "replies a turn", "ms waited", "gate locked"]
    sys.stdout.write(f"{table(head, rows)}\n")
    return 0


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.gate", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of simulated time, each")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
