"""Alerts about schedules: those that are late, and those that cannot submit."""

from datetime import datetime

from .. import conf
from ..alerting.alerts import AlertReport
from ..database import clock, sql
from ..models.alert import Severity
from ..supervision.conditions import PREFIX

# By workflow, of those past their time, along schedule_due, and of those that cannot submit, along
# schedule_failing, with one of their problems; each no further than `most`.
LATE = f"""
SELECT workflow, failing, count(*), min(name), min(since), min(problem) FROM (
    (SELECT workflow, name, false AS failing, look_at AS since, '' AS problem FROM orchestration_schedule
    WHERE look_at < {clock.VERIFIED} - %(limit)s * interval '1 second' AND problem = ''
    ORDER BY look_at LIMIT %(most)s)
    UNION ALL
    (SELECT workflow, name, true, failing_since, problem FROM orchestration_schedule
    WHERE problem <> '' AND failing_since < {clock.VERIFIED} - %(limit)s * interval '1 second'
    ORDER BY failing_since LIMIT %(most)s)) AS late
GROUP BY workflow, failing ORDER BY failing, workflow
"""  # noqa: S608 - put together from constants


def late(limit: float, now: datetime | None) -> list[AlertReport]:
    """Return a report for each workflow whose schedules are late, and for each where they cannot submit."""
    parameters = {"limit": limit, "now": now, "most": conf.BATCH_SIZE}
    return [_report(*row) for row in sql.run(LATE, parameters)]


def _report(
    workflow: str, failing: bool, count: int, name: str, since: datetime, problem: str
) -> AlertReport:
    noticed = f"When this was noticed: {_count(count, name)}, since {since:%Y-%m-%d %H:%M:%S} UTC."
    if failing:
        return AlertReport(
            fingerprint=f"{PREFIX}schedule/failing/{workflow}",
            severity=Severity.CRITICAL,
            title=f"{workflow}: schedules cannot submit their tasks",
            detail=f"{noticed} {problem}",
        )
    return AlertReport(
        fingerprint=f"{PREFIX}schedule/late/{workflow}",
        severity=Severity.WARNING,
        title=f"{workflow}: schedules are late",
        detail=f"{noticed} The housekeeper has more to do than it can, or its duty fails.",
    )


def _count(count: int, name: str) -> str:
    return name if count == 1 else f"{count}, such as {name}"
