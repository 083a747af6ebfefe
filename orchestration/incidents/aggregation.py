"""Add up the tallies of incidents and decide each incident's state; the housekeeper calls it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction

from .. import conf
from ..alerting import alerts
from ..cluster.duty import Duty
from ..database import sql
from ..models import Event, Incident
from ..models.alert import Severity
from ..models.fields import DatabaseNow
from ..models.incident import IncidentEventKind, IncidentState
from .events import incident_event
from .state import IncidentFacts, decide_state

HOUR_DAYS = 8  # days of hourly counts

# One statement, so one snapshot: the states of steps and the tallies belong together. A former leader
# that wakes up counts no tally twice, since counting deletes it. A locked incident keeps its tallies
# until it is free, and so does a locked tally.
AGGREGATE = """
WITH due AS (
    SELECT id FROM orchestration_incident WHERE state NOT IN ('resolved', 'muted')
    UNION SELECT id FROM orchestration_incident
        WHERE state = 'muted' AND muted_until <= (SELECT clock_timestamp())
    UNION SELECT incident_id FROM orchestration_incidenttally
), free AS MATERIALIZED (
    SELECT id FROM orchestration_incident WHERE id IN (SELECT id FROM due)
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), free_tallies AS MATERIALIZED (
    SELECT id FROM orchestration_incidenttally WHERE incident_id IN (SELECT id FROM free)
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM orchestration_incidenttally WHERE id IN (SELECT id FROM free_tallies) RETURNING *
), sums AS (
    SELECT incident_id, date_trunc('hour', at) AS hour, currency, actor, sum(failures) AS failures,
        sum(tasks) AS tasks, sum(open_tasks) AS open_tasks, sum(again) AS again,
        sum(retried) AS retried, sum(value) AS value,
        sum(open_tasks) FILTER (WHERE open_tasks > 0) AS hurt,
        max(at) FILTER (WHERE failures > 0) AS last_at, max(at) FILTER (WHERE retried > 0) AS tried_at
    FROM gone GROUP BY 1, 2, 3, 4
)
SELECT i.id,
    EXISTS (SELECT 1 FROM orchestration_step s WHERE s.incident_id = i.id
        AND s.process_state IN ('pending', 'processing')),
    EXISTS (SELECT 1 FROM orchestration_operation o WHERE o.ended_at IS NULL
        AND o.state IN ('waiting', 'running', 'paused', 'aborted') AND o.act = 'resubmit'
        AND o.incident_id = i.id)
    OR ((i.state = 'retrying' OR sums.retried > 0) AND EXISTS (
        SELECT 1 FROM orchestration_incidenthit h JOIN orchestration_step s ON s.id = h.step_id
        WHERE h.incident_id = i.id AND h.retried_at IS NOT NULL AND s.incident_id = i.id
            AND s.process_state IN ('pending', 'processing'))),
    CASE WHEN sums.hurt > 0 THEN EXISTS (SELECT 1 FROM orchestration_step s
        WHERE s.incident_id = i.id AND s.process_state = 'error' AND s.resolve_by IS NULL) END,
    clock_timestamp(), sums.hour, sums.currency, sums.actor, sums.failures, sums.tasks, sums.open_tasks,
    sums.again, sums.retried, sums.value, sums.hurt, sums.last_at, sums.tried_at
FROM orchestration_incident i JOIN free ON free.id = i.id
LEFT JOIN sums ON sums.incident_id = i.id
ORDER BY i.id
"""

HOURS = f"""
WITH old AS (
    DELETE FROM orchestration_incidenthour
    WHERE incident_id = ANY(%(incidents)s) AND hour < (SELECT clock_timestamp()) - interval '{HOUR_DAYS} days'
)
INSERT INTO orchestration_incidenthour (incident_id, hour, failures)
SELECT * FROM unnest(%(incidents)s::bigint[], %(hours)s::timestamptz[], %(failures)s::int[])
ON CONFLICT (incident_id, hour) DO UPDATE SET
    failures = orchestration_incidenthour.failures + excluded.failures
"""  # noqa: S608 - a constant of our own

AGGREGATED_FIELDS = (
    "failures", "tasks", "open_tasks", "at_risk", "last_seen", "severity", "state", "had_open_tasks",
    "tried_at", "returned_at", "resolved_at", "acknowledged_at", "acknowledged_by", "muted_at",
    "muted_by", "muted_until",
)  # fmt: skip


@dataclass(kw_only=True)
class _Sum:
    """The sum of one incident's tallies, and the states of its steps."""

    active_steps: bool
    retrying: bool
    now: datetime
    failures: int = 0
    tasks: int = 0
    open_tasks: int = 0
    again: int = 0
    retried: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # by whom
    hurt: int = 0
    critical: bool = False  # one of its tasks stays in error until a person acts
    last_at: datetime | None = None
    tried_at: datetime | None = None
    values: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    hours: dict[datetime, int] = field(default_factory=lambda: defaultdict(int))


@transaction.atomic
def aggregate(by: str) -> int:
    """Add up the tallies; return how many incidents changed."""
    sums = _sums()
    if not sums:
        return 0
    events: list[Event] = []
    changed = []
    rows = Incident.objects.filter(id__in=sums)  # locked by now
    for incident in rows.defer("message", "sample").order_by("id"):
        before = _values(incident)
        _add(incident, sums[incident.id])
        events += _apply_state(incident, sums[incident.id], by)
        if _values(incident) != before:
            changed.append(incident)
    if changed:
        Incident.objects.bulk_update(changed, AGGREGATED_FIELDS)
    _keep_hours(sums)
    Event.objects.bulk_create(events)
    return len(changed)


def _sums() -> dict[int, _Sum]:
    sums: dict[int, _Sum] = {}
    for known, active_steps, retrying, critical, now, hour, currency, actor, *counts in sql.run(
        AGGREGATE, {}
    ):
        total = sums.setdefault(
            known, _Sum(active_steps=active_steps, retrying=bool(retrying), now=now)
        )
        total.retrying = total.retrying or bool(retrying)
        total.critical = total.critical or bool(critical)
        if hour is None:
            continue
        failures, tasks, open_tasks, again, retried, value, hurt, last_at, tried_at = counts
        total.failures += failures
        total.tasks += tasks
        total.open_tasks += open_tasks
        total.again += again
        if retried:
            total.retried[actor] += retried
        total.hurt += hurt or 0
        total.last_at = max(filter(None, (total.last_at, last_at)), default=None)
        total.tried_at = max(filter(None, (total.tried_at, tried_at)), default=None)
        if currency:
            total.values[currency] += int(value)
        if failures:
            total.hours[hour] += failures
    return sums


def _values(incident: Incident) -> dict[str, object]:
    return {name: getattr(incident, name) for name in AGGREGATED_FIELDS}


def _add(incident: Incident, sums: _Sum) -> None:
    incident.failures += sums.failures
    incident.tasks += sums.tasks
    incident.open_tasks += sums.open_tasks
    risk = {**incident.at_risk}
    for currency, value in sums.values.items():
        risk[currency] = risk.get(currency, 0) + value
    incident.at_risk = {currency: value for currency, value in risk.items() if value}
    incident.last_seen = max(incident.last_seen, sums.last_at or incident.last_seen)
    incident.tried_at = max(filter(None, (incident.tried_at, sums.tried_at)), default=None)
    if sums.hurt:
        incident.had_open_tasks = True
    if sums.critical:
        incident.severity = Severity.CRITICAL


def _apply_state(incident: Incident, sums: _Sum, by: str) -> Sequence[Event]:
    """Set the state of an incident; return the events of that."""
    events: list[Event] = []

    def happened(kind: IncidentEventKind, text: str = "") -> None:
        events.append(incident_event(incident, kind, by, text))

    events += [
        incident_event(incident, IncidentEventKind.RETRIED, actor, _tasks(count))
        for actor, count in sums.retried.items()
    ]
    muted = incident.state == IncidentState.MUTED
    if muted and incident.muted_until and incident.muted_until <= sums.now:
        unmuted(incident)
        muted = False
        happened(IncidentEventKind.UNMUTED, "its time was over")
        alerts.notify(incident.id)
    resolved = incident.state == IncidentState.RESOLVED
    if not muted and (sums.again or (resolved and sums.failures)) and not incident.returned_at:
        incident.returned_at = sums.now
        incident.acknowledged_at, incident.acknowledged_by = None, ""
        why = f"{_tasks(sums.again)} failed again" if sums.again else "after it was resolved"
        happened(IncidentEventKind.RETURNED, why)
    state = state_now(
        incident, active_steps=sums.active_steps, retrying=sums.retrying, failed=bool(sums.failures),
        now=sums.now, muted=muted,
    )  # fmt: skip
    if state == IncidentState.RESOLVED and not resolved:
        resolve_now(incident, sums.now)
        happened(IncidentEventKind.RESOLVED, "no task is in error by it any more")
    incident.state = state
    return events


def state_now(
    incident: Incident,
    *,
    active_steps: bool,
    retrying: bool,
    failed: bool,
    now: datetime,
    muted: bool,
) -> IncidentState:
    """Return the state of an incident."""
    return decide_state(
        IncidentFacts(
            state=incident.state,
            open_tasks=incident.open_tasks,
            active_steps=active_steps,
            retrying=retrying,
            failed=failed,
            had_open_tasks=incident.had_open_tasks,
            returned=incident.returned_at is not None,
            acknowledged=incident.acknowledged_at is not None,
            silent=(now - incident.last_seen) / timedelta(seconds=1),
            muted=muted,
        )
    )


def resolve_now(incident: Incident, now: datetime | DatabaseNow) -> None:
    """Mark an incident as resolved; its next failure starts anew."""
    incident.resolved_at = now
    incident.had_open_tasks = False
    incident.returned_at = None
    incident.acknowledged_at, incident.acknowledged_by = None, ""


def unmuted(incident: Incident) -> None:
    """Clear the mute of an incident."""
    incident.state = IncidentState.NEW
    incident.muted_at, incident.muted_by, incident.muted_until = None, "", None


def _keep_hours(sums: dict[int, _Sum]) -> None:
    rows = [(known, hour, n) for known, total in sums.items() for hour, n in total.hours.items()]
    if rows:
        incidents, hours, failures = (list(column) for column in zip(*rows, strict=True))
        sql.run(HOURS, {"incidents": incidents, "hours": hours, "failures": failures})


def _tasks(count: int) -> str:
    return f"{count:,} task{'' if count == 1 else 's'}"


# The interval is for incidents that time alone changes.
AGGREGATE_INCIDENTS = Duty(
    name="aggregate incidents",
    run=lambda sweep: aggregate(sweep.leadership.actor),
    due="EXISTS (SELECT FROM orchestration_incidenttally)",
    every=conf.DUTY_INTERVAL_S,
)
