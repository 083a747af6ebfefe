"""Find out whether a sweep has work, and run its duties, isolated from one another."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ..alerting.alerts import AlertReport
from ..cluster import leader_election
from ..cluster.duty import Done, Duty, Sweep
from ..database import prepared, sql
from ..models import low_water
from ..models.alert import Severity
from ..tracing.subject import about_task
from . import conditions

logger = logging.getLogger(__name__)
LOOKING = "see what is due"
Progress = Callable[[], None]


def question(duties: Sequence[Duty]) -> str:
    """Return the statement that says of each duty with a condition whether it may have work."""
    return "SELECT " + ", ".join(f"(\n{duty.due}\n)" for duty in duties if duty.due)


def parameters(duties: Sequence[Duty]) -> dict[str, Any]:
    """Return the parameters of the conditions of all duties."""
    values: dict[str, Any] = {}
    for read in dict.fromkeys(duty.parameters for duty in duties):
        values |= read()
    return values


def due(duties: Sequence[Duty]) -> set[str]:
    """Return the names of the duties that may have work: one statement, so that this costs almost nothing."""
    with low_water.AGENTS.watching(), low_water.PROCESSING.watching():
        (answers,) = prepared.run(question(duties), parameters(duties))
    asked = (duty.name for duty in duties if duty.due)
    return {name for name, is_due in zip(asked, answers, strict=True) if is_due}


def run(sweep: Sweep, duties: Sequence[Duty], progress: Progress) -> Done:
    """Run the duties that are due, or whose interval is over; return what they did.

    A failing task or duty never blocks the others; each raises an alert and is retried by the next sweep.
    `progress` is called after each duty. Raises an ExceptionGroup of the duties' exceptions.
    """
    memory = sweep.memory
    elapsed = memory.elapsed(duties)
    for duty in _to_do(sweep, duties, elapsed):
        memory.failing.pop(duty.name, None)
        with sweep.isolated(duty.name):
            sweep.perform(duty)
        progress()
    if LOOKING not in sweep.failed:
        memory.failing.pop(LOOKING, None)
    memory.failing.update(sweep.failed)
    if elapsed or sweep.failed or sweep.stuck:
        with sweep.isolated("raise its alerts"):
            _raise_alerts(sweep, memory.failing)
    for task, error in islice(sweep.stuck.items(), 1):  # the alert has their number
        logger.error("task %s cannot be recovered", task, exc_info=error, extra=about_task(task))
    if elapsed or str(sweep.done):
        leader_election.note_sweep(sweep.leadership, str(sweep.done))
    if sweep.failed:
        raise ExceptionGroup("duties of the sweep failed", list(sweep.failed.values()))
    return sweep.done


def _to_do(sweep: Sweep, duties: Sequence[Duty], elapsed: set[str]) -> Iterator[Duty]:
    """Yield the duties that are due, or whose interval is over, in order.

    A duty that has run may have created work for those behind it: these are asked about again.
    """
    names, is_old = elapsed | _due(sweep, duties), False
    for duty in duties:
        if is_old and duty.due and duty.name not in names:
            names |= _due(sweep, duties)
            is_old = False
        if duty.name in names:
            yield duty
            is_old = True
        elif duty.every is None:
            sweep.memory.failing.pop(duty.name, None)  # nothing is left of what it failed to do


def _due(sweep: Sweep, duties: Sequence[Duty]) -> set[str]:
    """Return the names of the duties that may have work: of all if the query fails, as each looks itself."""
    names = {duty.name for duty in duties if duty.due}
    with sweep.isolated(LOOKING):
        names &= due(duties)
    return names


def _raise_alerts(sweep: Sweep, failing: Mapping[str, Exception]) -> None:
    """Open the alerts about failing duties and tasks, and close the others of their kind."""
    leader = sweep.leadership.name
    prefix = f"{conditions.PREFIX}{leader}/"
    reports = [
        AlertReport(
            fingerprint=f"{prefix}failing/{duty}",
            severity=Severity.CRITICAL,
            title=f"The {leader} fails to {duty}",
            detail=f"It tries again, and does its other duties. {_described(error)}",
        )
        for duty, error in failing.items()
    ]
    for task, error in islice(sweep.stuck.items(), 1):
        reports.append(
            AlertReport(
                fingerprint=f"{prefix}stuck",
                severity=Severity.CRITICAL,
                title="Tasks cannot be recovered",
                detail=f"When this was noticed: {len(sweep.stuck)}, the first of them {task}. "
                f"{_described(error)}",
            )
        )
    conditions.keep(prefix, reports)


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {sql.first_line(error)}"
