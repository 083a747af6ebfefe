"""Submits the tasks of runs, sets the service's rules for them, and reads how they ended.

Requires django.setup(). Times are Unix times; the reference of a task is `<run>/<number>`.
"""

import json
import os
import time
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from django.db import connection

from bench.lanes.fates import Rules
from orchestration.messaging import queues
from orchestration.models import Submission

Result = TypeVar("Result")
LOOK = 0.25  # seconds between two queries for a run's tasks
TICK = 0.05  # seconds between two submissions of a steady rate
BLOCKS = 10.0  # seconds for which a task blocks its worker

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

# values beyond the limits of the constraint
NEVER_TRIP = """
ALTER TABLE orchestration_policy DROP CONSTRAINT policy_breaker;
UPDATE orchestration_policy SET breaker_failures = 32767, breaker_share = 2
WHERE agent = ANY(%s)
"""


def turn_breakers_off(lanes: Sequence[str]) -> None:
    """Set the breakers of lanes so that they never open."""
    with connection.cursor() as cursor:
        cursor.execute(NEVER_TRIP, [list(lanes)])


def in_thread(
    pool: ThreadPoolExecutor, work: Callable[..., Result], *arguments: Any
) -> "Future[Result]":
    """Run `work` in a thread of the pool, and close the thread's database connection afterwards."""

    def run() -> Result:
        try:
            return work(*arguments)
        finally:
            connection.close()

    return pool.submit(run)


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The service's counts since a run's rules were set: all calls, and the peak of concurrent ones."""

    calls: int
    peak: int


@dataclass(kw_only=True)
class Run:
    """One load on one lane; `placed` maps a task's number to the time when it was due."""

    lane: str
    name: str
    placed: dict[int, float] = field(default_factory=dict)

    def rule(self, rules: Rules) -> None:
        """Set the service's rules for this run, and reset its counts."""
        self._ask("PUT", asdict(rules))

    def counts(self) -> Counts:
        """Return the service's counts."""
        return Counts(**self._ask("GET"))

    def pace(self, rate: float, seconds: float) -> None:
        """Submit tasks at a steady rate for some seconds."""
        first, begin = len(self.placed), time.time()
        due = {first + number: begin + number / rate for number in range(round(rate * seconds))}
        while due:
            now = time.time()
            ready = {number: at for number, at in due.items() if at <= now}
            if ready:
                _submit([self], ready)
            for number in ready:
                del due[number]
            time.sleep(TICK)

    def ends(self) -> dict[int, float]:
        """Return the times when tasks were processed, by number."""
        with connection.cursor() as cursor:
            cursor.execute(ENDED, [self.lane, f"{self.name}/"])
            return dict(cursor)

    def errors(self) -> dict[int, tuple[int | None, float]]:
        """Return the tasks in error, by number: the incident and the time of each."""
        with connection.cursor() as cursor:
            cursor.execute(IN_ERROR, [self.lane, f"{self.name}/"])
            return {number: (incident, at) for number, incident, at in cursor}

    def wait(self, count: int, until: float) -> dict[int, float]:
        """Wait until `count` tasks are processed, or until a time; return the times, by number."""
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
            content: dict[str, Any] = json.load(answer)
            return content


def place(runs: Sequence[Run], numbers: Iterable[int], poison: Mapping[int, str] = {}) -> None:
    """Submit tasks of runs at once; `poison` names the fault of some, by number.

    The runs' tasks alternate, so that no run has a head start.
    """
    _submit(runs, dict.fromkeys(numbers, time.time()), poison)


def _submit(runs: Sequence[Run], due: Mapping[int, float], poison: Mapping[int, str] = {}) -> None:
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
