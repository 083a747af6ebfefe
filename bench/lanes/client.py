"""Places the tasks of runs, sets the service's rules for them, and reads how they ended.

To be imported when Django is set up. Times are Unix times; the tasks of a run are known by their
references, `<run>/<number>`.
"""

import json
import os
import time
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db import connection

from bench.lanes.fates import Rules
from orchestration import queues
from orchestration.models import Submission

LOOK = 0.25  # seconds between two looks at a run's tasks
TICK = 0.05  # seconds between two postings of a steady rate
BLOCKS = 10.0  # seconds for which a task that blocks its worker does so

ENDED = """
SELECT split_part(t.reference, '/', 2)::int, extract(epoch FROM t.ended_at)::float8
FROM orchestration_task t
WHERE t.workflow = %s AND starts_with(t.reference, %s) AND t.state = 'processed'
"""
IN_ERROR = """
SELECT split_part(t.reference, '/', 2)::int, s.incident_id, extract(epoch FROM s.ended_at)::float8
FROM orchestration_task t JOIN orchestration_step s ON s.task_id = t.id
WHERE t.workflow = %s AND starts_with(t.reference, %s) AND s.process_state = 'error'
"""

# Beyond what an admin may set: the check would not allow it.
NEVER_TRIP = """
ALTER TABLE orchestration_policy DROP CONSTRAINT policy_breaker;
UPDATE orchestration_policy SET breaker_failures = 32767, breaker_share = 2
WHERE agent = ANY(%s)
"""


def turn_breakers_off(lanes: Sequence[str]) -> None:
    """Give lanes a breaker that never trips."""
    with connection.cursor() as cursor:
        cursor.execute(NEVER_TRIP, [list(lanes)])


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What the service counted since a run's rules were set: calls, and the most at once."""

    calls: int
    peak: int


@dataclass(kw_only=True)
class Run:
    """One load on one lane; `placed` has the time at which each task was due to be posted."""

    lane: str
    name: str
    placed: dict[int, float] = field(default_factory=dict)

    def rule(self, rules: Rules) -> None:
        """Have the service treat this run by `rules` from now on, and count anew."""
        self._ask("PUT", asdict(rules))

    def counts(self) -> Counts:
        """Return what the service counted since."""
        return Counts(**self._ask("GET"))

    def pace(self, rate: float, seconds: float) -> None:
        """Post tasks at a steady rate for so long."""
        first, begin = len(self.placed), time.time()
        due = {first + number: begin + number / rate for number in range(round(rate * seconds))}
        while due:
            now = time.time()
            ready = {number: at for number, at in due.items() if at <= now}
            if ready:
                _post([self], ready)
            for number in ready:
                del due[number]
            time.sleep(TICK)

    def ends(self) -> dict[int, float]:
        """Return when tasks were processed, by number."""
        with connection.cursor() as cursor:
            cursor.execute(ENDED, [self.lane, f"{self.name}/"])
            return dict(cursor)

    def errors(self) -> dict[int, tuple[int | None, float]]:
        """Return the tasks in error: the incident of each, and when."""
        with connection.cursor() as cursor:
            cursor.execute(IN_ERROR, [self.lane, f"{self.name}/"])
            return {number: (incident, at) for number, incident, at in cursor}

    def wait(self, count: int, until: float) -> dict[int, float]:
        """Wait for `count` tasks to be processed, or until a Unix time; return when each was."""
        while len(ends := self.ends()) < count and time.time() < until:
            time.sleep(LOOK)
        return ends

    def _ask(self, method: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - our own service
            f"{os.environ['SERVICE_URL']}/runs/{self.name}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
        )
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - the same
            found: dict[str, Any] = json.load(answer)
            return found


def place(runs: Sequence[Run], numbers: Iterable[int], poison: Mapping[int, str] = {}) -> None:
    """Post tasks of runs, all at once; `poison` says what is wrong with some of them.

    A number is posted for each run before the next one is: none of them has a start.
    """
    _post(runs, dict.fromkeys(numbers, time.time()), poison)


def _post(runs: Sequence[Run], due: Mapping[int, float], poison: Mapping[int, str] = {}) -> None:
    Submission.objects.bulk_create(
        Submission(
            workflow=run.lane,
            reference=f"{run.name}/{number}",
            data={
                "run": run.name,
                "number": number,
                "poison": poison.get(number, ""),
                "seconds": BLOCKS,
            },
        )
        for number in due
        for run in runs
    )
    queues.try_to_ring(queues.SUBMISSION)
    for run in runs:
        run.placed.update(due)
