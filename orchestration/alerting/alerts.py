"""Raise and close alerts: one open row per cause, closed when the cause is gone."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from .. import conf
from ..database import sql
from ..database.lane import Lane, Problem, State
from ..models import Alert, Event, Incident, Task
from ..models.alert import Severity
from ..models.history import EventKind
from ..models.inbox import INBOX_LETTERS, STATUSES, SUBMISSIONS
from ..models.request import REQUESTS
from ..states import Direction
from . import notifications

STUCK = "stuck"  # ends the fingerprint of a cause that has failed for some minutes

# Locks the open alerts of causes, or makes them, in one order, so concurrent raisers never deadlock. New
# alerts (rows without xmax) create notifications in the same statement, unless their incident is muted.
RAISE = f"""
WITH raised AS (
    INSERT INTO orchestration_alert
        (fingerprint, severity, title, detail, count, incident_id, first_seen, last_seen)
    SELECT fingerprint, severity, title, detail, count, incident, clock_timestamp(),
        clock_timestamp()
    FROM unnest(%(fingerprints)s::text[], %(severities)s::text[], %(titles)s::text[],
        %(details)s::text[], %(counts)s::int[], %(incidents)s::bigint[])
        AS a (fingerprint, severity, title, detail, count, incident)
    ORDER BY fingerprint
    ON CONFLICT (fingerprint) WHERE closed_at IS NULL DO UPDATE SET
        count = orchestration_alert.count + excluded.count, last_seen = clock_timestamp(),
        detail = excluded.detail
    RETURNING id, fingerprint, severity, xmax = 0 AND NOT EXISTS (
        SELECT 1 FROM orchestration_incident i
        WHERE i.id = orchestration_alert.incident_id AND i.state = 'muted') AS opened
), {notifications.OPENED}
SELECT fingerprint, id FROM raised
"""  # noqa: S608 - put together from constants

LATE_EFFECT = "late_effect/"  # begins the fingerprints of alerts that only a person can close

# Of code that blocked an event loop, and of webhooks that were refused, once there were none for a while.
BLOCKED_LOOP, WEBHOOK = "blocked_loop/", "webhook/"
QUIET = f"""
a.fingerprint ~ '^({BLOCKED_LOOP}|{WEBHOOK})'
    AND a.last_seen < (SELECT clock_timestamp()) - {conf.LOOP_ALERT_LIFE_S} * interval '1 second'
"""

UNUSED = """
a.id = ANY(%(ids)s) AND NOT EXISTS (SELECT 1 FROM orchestration_step s WHERE s.alert_id = a.id)
"""


def _are_left(lane: Lane) -> str:
    """Return SQL for whether a lane has rows for which alert `a` is open.

    It reads one row of an index such as submission_unresolved; for an EXISTS Postgres may hash all rows.
    """
    order = f"{lane.group}, {lane.problem or lane.refused_at}, tries"
    group = f"m.{lane.group} = split_part(a.fingerprint, '/', 2)"
    refused = lane.needs_person & (Q(problem="") if lane.problem else Q())
    waits = {state: which for state, which in lane.states.items() if state in WAITS}
    often = [which & Q(tries__gte=conf.ALERT_AFTER_FAILURES) for which in waits.values()]

    def any_of(*conditions: Q) -> str:
        firsts = (f"{group} AND {lane.where(which)}" for which in conditions)
        return " OR ".join(f"{lane.first('true', which, order)} IS TRUE" for which in firsts)

    return f"""CASE split_part(a.fingerprint, '/', 3) WHEN '' THEN {any_of(refused)}
        WHEN '{STUCK}' THEN {any_of(*often)}
        WHEN '{Problem.UNKNOWN}' THEN {any_of(waits[State.UNKNOWN]) if lane.problem else "false"}
        ELSE {any_of(waits[State.WAITING])} END"""


WAITS = {State.WAITING, State.UNKNOWN}
LANES = {lane.name: lane for lane in (SUBMISSIONS, REQUESTS, STATUSES)}
OF_LANES = " ".join(f"WHEN '{name}' THEN {_are_left(lane)}" for name, lane in LANES.items())
REFUSED = INBOX_LETTERS.where(INBOX_LETTERS.set_aside)
NO_FAILURE_LEFT = f"""
NOT CASE split_part(a.fingerprint, '/', 1) {OF_LANES}
    ELSE EXISTS (SELECT FROM orchestration_deadletter m
        WHERE {REFUSED} AND a.fingerprint = 'dead_letter/' || m.queue) END
"""

NOT_ASIDE = f"a.id = ANY(%(ids)s) AND {NO_FAILURE_LEFT}"
RECOVERED = f"""
SELECT a.id FROM orchestration_alert a
WHERE a.closed_at IS NULL AND a.fingerprint ~ '^({"|".join(LANES)}|dead_letter)/'
    AND {NO_FAILURE_LEFT}
"""  # noqa: S608 - put together from constants

# Of a workflow's tasks past their time: the first along task_late_workflow is asked for, as above.
NONE_LATE = """
a.fingerprint LIKE 'overdue/%%' AND (SELECT true FROM orchestration_task t
    WHERE t.workflow = substr(a.fingerprint, length('overdue/') + 1) AND t.overdue
        AND t.state IN ('pending', 'processing', 'undoing') LIMIT 1) IS NOT TRUE
"""

NOTIFY = """
INSERT INTO orchestration_notification (alert_id, channel_id, kind)
SELECT a.id, c.id, 'opened' FROM orchestration_alert a JOIN orchestration_notificationchannel c
    ON c.active AND (c.severity = 'warning' OR c.severity = a.severity)
WHERE a.incident_id = %(incident)s AND a.closed_at IS NULL
ON CONFLICT DO NOTHING
"""

ACKNOWLEDGE = """
UPDATE orchestration_alert SET acknowledged_at = clock_timestamp(), acknowledged_by = %(by)s
WHERE id = ANY(%(ids)s) AND closed_at IS NULL AND acknowledged_at IS NULL
RETURNING id, title
"""


@dataclass(frozen=True, kw_only=True)
class AlertReport:
    """One occurrence of a cause: the text of its alert, and how often it was seen."""

    fingerprint: str
    severity: Severity
    title: str
    detail: str = ""
    count: int = 1
    incident: int | None = None


@dataclass(frozen=True, kw_only=True)
class StepError:
    """A step that went to error: its incident, and the message of its agent."""

    incident: int
    message: str
    settles_itself: bool = False  # its task is undone by itself, so it can wait

    @property
    def severity(self) -> Severity:
        """How soon a person should look."""
        return Severity.WARNING if self.settles_itself else Severity.CRITICAL


def raise_alert(
    fingerprint: str, *, severity: Severity, title: str, detail: str = "", count: int = 1
) -> int:
    """Open the alert of a cause, or count it again if it is open; return its id."""
    report = AlertReport(
        fingerprint=fingerprint, severity=severity, title=title, detail=detail, count=count
    )
    return raise_all([report])[fingerprint]


def raise_all(reports: Sequence[AlertReport]) -> dict[str, int]:
    """Open or count the alerts of different causes, in one statement; return their ids by cause."""
    row = {
        "fingerprints": [report.fingerprint for report in reports],
        "severities": [report.severity.value for report in reports],
        "titles": [report.title for report in reports],
        "details": [report.detail for report in reports],
        "counts": [report.count for report in reports],
        "incidents": [report.incident for report in reports],
    }
    return dict(sql.run(RAISE, row))


def raise_for_steps(errors: Sequence[StepError]) -> list[int]:
    """Raise one alert per incident among `errors`; return the alert's id for each of them."""
    counts = Counter(error.incident for error in errors)
    by_cause = {error.incident: error for error in errors}
    causes = {incident.id: incident for incident in Incident.objects.filter(id__in=counts)}
    ids = raise_all(
        [
            AlertReport(
                fingerprint=_cause(incident),
                severity=by_cause[incident.id].severity,
                title=incident.title + (": partly undone" if incident.direction == "undo" else ""),
                detail=by_cause[incident.id].message,
                count=counts[incident.id],
                incident=incident.id,
            )
            for incident in causes.values()
        ]
    )
    return [ids[_cause(causes[error.incident])] for error in errors]


def _cause(incident: Incident) -> str:
    """Return what is the same for all alerts of an incident, with the cause to be read in it."""
    kind = "undo" if incident.direction == Direction.UNDO else "step"
    where = f"{kind}/{incident.workflow}/{incident.step}/{incident.code}"[:250]
    return f"{where}/{incident.fingerprint}"


def notify(incident: int) -> None:
    """Create the notifications that were suppressed while an incident was muted."""
    sql.run(NOTIFY, {"incident": incident})


def close(fingerprint: str, *, wait: bool = True) -> None:
    """Close the open alert of a cause, if there is one; see `notifications.close` for `wait`."""
    notifications.close("a.fingerprint = %(fingerprint)s", {"fingerprint": fingerprint}, wait=wait)


@transaction.atomic
def acknowledge(alerts: Iterable[int], *, by: str, reason: str = "") -> int:
    """Mark open alerts as acknowledged; return how many were not before."""
    taken = sql.run(ACKNOWLEDGE, {"ids": list(alerts), "by": by})
    Event.objects.bulk_create(
        Event(
            kind=EventKind.ACKNOWLEDGED, actor=by, reason=reason,
            detail={"alert": alert, "title": title},
        )
        for alert, title in taken
    )  # fmt: skip
    return len(taken)


@transaction.atomic
def close_late_effect(alert: int, *, by: str, reason: str) -> bool:
    """Close the alert of a late effect that a person has settled; return whether it was open.

    All other alerts close by themselves when their cause is gone.
    """
    mine = "a.id = %(id)s AND starts_with(a.fingerprint, %(prefix)s)"
    if not notifications.close(mine, {"id": alert, "prefix": LATE_EFFECT}):
        return False
    row = Alert.objects.get(id=alert)
    Event.objects.create(
        task_id=late_effect_of(row.fingerprint), kind=EventKind.CLOSED, actor=by, reason=reason,
        detail={"alert": alert, "title": row.title},
    )  # fmt: skip
    return True


def late_effect_of(fingerprint: str) -> UUID | None:
    """Return the task whose effect showed late, if that is the cause of an alert."""
    kind, _, where = fingerprint.partition("/")
    return UUID(where.partition("/")[0]) if f"{kind}/" == LATE_EFFECT else None


def close_if_unused(alerts: Iterable[int | None]) -> None:
    """Close those of `alerts` that no step in error refers to.

    The rows are locked first. So a transaction that raises the same cause has either attached its step
    before the check, or waits and then opens a new alert.
    """
    locked = list(
        Alert.objects.select_for_update()
        .filter(id__in=[alert for alert in alerts if alert is not None])
        .order_by("id")
        .values_list("id", flat=True)
    )
    if locked:
        notifications.close(UNUSED, {"ids": locked})


def close_recovered() -> int:
    """Close the alerts of submissions and messages that no longer fail; return how many.

    The rows are locked before the second check, as in `close_if_unused`.
    """
    settled = [alert for (alert,) in sql.run(RECOVERED, {})]
    if not settled:
        return 0
    with transaction.atomic():
        locked = sql.lock(
            Alert.objects.filter(id__in=settled).order_by("id")
        )  # the leader looks again
        return notifications.close(NOT_ASIDE, {"ids": list(locked.values_list("id", flat=True))})


def close_quiet() -> int:
    """Close the alerts about blocked event loops and webhooks that were not raised for a while."""
    return notifications.close(QUIET, {}, wait=False)


def overdue(tasks: Sequence[Task]) -> None:
    """Raise one alert per workflow that has overdue tasks."""
    for workflow, count in sorted(Counter(task.workflow for task in tasks).items()):
        raise_alert(
            f"overdue/{workflow}",
            severity=Severity.WARNING,
            title=f"{workflow}: tasks are overdue",
            count=count,
        )


def close_overdue() -> int:
    """Close the alerts of workflows without overdue tasks; return how many."""
    return notifications.close(NONE_LATE, {}, wait=False)
