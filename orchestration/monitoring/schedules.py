"""Alerts about schedules: those that are late, and those that cannot submit."""

from datetime import datetime

from .. import conf
from ..alerting.alerts import AlertReport
from ..database import clock, sql
from ..models.alert import Severity
from ..supervision.conditions import PREFIX

# By workflow, of those past their time: along schedule_due, no further than `most`.
LATE = f"""
SELECT workflow, count(*), min(name), min(look_at) FROM (
    SELECT workflow, name, look_at FROM orchestration_schedule
    WHERE look_at < {clock.VERIFIED} - %(limit)s * interval '1 second' AND problem = ''
    ORDER BY look_at LIMIT %(most)s) AS late
GROUP BY workflow ORDER BY workflow
"""  # noqa: S608 - put together from constants

# By workflow, along schedule_failing, no further than `most`; one of their problems.
FAILING = f"""
SELECT workflow, count(*), min(name), min(failing_since), min(problem) FROM (
    SELECT workflow, name, failing_since, problem FROM orchestration_schedule
    WHERE problem <> '' AND failing_since < {clock.VERIFIED} - %(limit)s * interval '1 second'
    ORDER BY failing_since LIMIT %(most)s) AS failing
GROUP BY workflow ORDER BY workflow
"""  # noqa: S608 - put together from constants


def late(limit: float, now: datetime | None) -> list[AlertReport]:
    """Return a report for each workflow whose schedules are late, and for each where they cannot submit."""
    parameters = {"limit": limit, "now": now, "most": conf.BATCH_SIZE}
    return [
        AlertReport(
            fingerprint=f"{PREFIX}schedule/late/{workflow}",
            severity=Severity.WARNING,
            title=f"{workflow}: schedules are late",
            detail=f"When this was noticed: {_count(count, name)}, since {since:%Y-%m-%d %H:%M:%S} UTC. "
            "The housekeeper has more to do than it can, or its duty fails.",
        )
        for workflow, count, name, since in sql.run(LATE, parameters)
    ] + [
        AlertReport(
            fingerprint=f"{PREFIX}schedule/failing/{workflow}",
            severity=Severity.CRITICAL,
            title=f"{workflow}: schedules cannot submit their tasks",
            detail=f"When this was noticed: {_count(count, name)}, since {since:%Y-%m-%d %H:%M:%S} UTC. "
            f"{problem}",
        )
        for workflow, count, name, since, problem in sql.run(FAILING, parameters)
    ]


def _count(count: int, name: str) -> str:
    return name if count == 1 else f"{count}, such as {name}"
