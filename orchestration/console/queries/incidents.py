"""Incidents: what fails by one cause. The counters are read as they were kept; nothing is counted."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from ...database import clock, sql
from ...database.capped_counts import CAP
from ...models import Event, Incident, IncidentHit, IncidentHour, Operation, Step
from ...models.incident import IncidentEventKind, IncidentState
from ...models.operation import OperationState
from ...states import StepState
from .conflicts import UserAction

PAGE = 50
HIT = 25  # tasks of an incident's page
SAMPLES = 3
HOURS = 24  # of the trend
MOST_EVENTS = 100
MOST_OPERATIONS = 10
OPEN = (
    IncidentState.NEW, IncidentState.RETURNED, IncidentState.RETRYING, IncidentState.ACKNOWLEDGED,
)  # fmt: skip
# How each way out of a resubmission is found: by the state of the step now, and the cause it has.
RETRIED = """
SELECT count(*) FILTER (WHERE s.process_state IN ('processed', 'skipped')),
    count(*) FILTER (WHERE s.process_state = 'error' AND s.incident_id = %(incident)s),
    count(*) FILTER (WHERE s.process_state = 'error' AND s.incident_id <> %(incident)s),
    count(*) FILTER (WHERE s.process_state IN ('waiting', 'pending', 'processing', 'awaiting')),
    count(*) FILTER (WHERE s.process_state = 'cancelled')
FROM (SELECT step_id FROM orchestration_incidenthit
    WHERE incident_id = %(incident)s AND retried_at IS NOT NULL
    ORDER BY retried_at DESC LIMIT %(limit)s) h
JOIN orchestration_step s ON s.id = h.step_id
"""

DID = {
    IncidentEventKind.OPENED: "was the first to see it",
    IncidentEventKind.RETURNED: "found that it has returned",
    IncidentEventKind.RESOLVED: "resolved it",
    IncidentEventKind.ACKNOWLEDGED: "acknowledged it",
    IncidentEventKind.ASSIGNED: "assigned it",
    IncidentEventKind.MUTED: "muted it",
    IncidentEventKind.UNMUTED: "unmuted it",
}


@dataclass(frozen=True, kw_only=True)
class IncidentFilters:
    """The filters of the list; empty means any, but an empty state means open.

    `after` is the last incident of the page before: its place in the order, and its id.
    """

    state: str = ""
    workflow: str = ""
    step: str = ""
    agent: str = ""
    assignee: int | None = None
    by_last: bool = False
    after: tuple[Any, int] | None = None


@dataclass(frozen=True, kw_only=True)
class IncidentRow:
    """An incident, and how often it struck in each of the last hours, oldest first."""

    incident: Incident
    trend: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class IncidentPage:
    """One page of incidents; `last` is the place that the next one continues from."""

    now: datetime
    rows: Sequence[IncidentRow]
    last: Incident | None


@dataclass(frozen=True, kw_only=True)
class Retried:
    """What came of all that was ever resubmitted of an incident, as it is by now."""

    fixed: int
    again: int
    other: int
    under_way: int
    undone: int

    @property
    def total(self) -> int:
        """Return of how many."""
        return self.fixed + self.again + self.other + self.under_way + self.undone

    @property
    def is_cut(self) -> bool:
        """Return whether there are more: the newest were counted."""
        return self.total > CAP


@dataclass(frozen=True, kw_only=True)
class HitPage:
    """Tasks that an incident hit, newest first: each step with its task. `older` continues it."""

    rows: Sequence[tuple[Step, IncidentHit | None]]
    older: int | None


@dataclass(frozen=True, kw_only=True)
class IncidentDetail:
    """All that the page of an incident shows."""

    now: datetime
    incident: Incident
    trend: Sequence[int]
    hit: HitPage
    samples: Sequence[Step]
    operations: Sequence[Operation]
    retried: Retried
    events: Sequence[tuple[str, Event]]  # what happened, in words
    seen: int  # the last event that changes what anybody would do
    cut: bool


def incidents(filters: IncidentFilters) -> IncidentPage:
    """Return the page of incidents that `filters` ask for: three queries."""
    place = "last_seen" if filters.by_last else "open_tasks"
    matches = filtered(filters).defer("message").select_related("assignee")
    if filters.after:
        value, last = filters.after
        matches = matches.filter(Q(**{f"{place}__lt": value}) | Q(**{place: value}, id__lt=last))
    rows = list(matches.order_by(f"-{place}", "-id")[: PAGE + 1])
    page, now = rows[:PAGE], clock.database_now()
    return IncidentPage(
        now=now, rows=_with_trends(page, now), last=page[-1] if len(rows) > PAGE else None
    )


def incident_detail(
    incident_id: int, *, ever: bool = False, before: int | None = None
) -> IncidentDetail | None:
    """Return an incident's page, or None if there is none: nine queries.

    Of the tasks hit it shows those in error now, or all `ever`, from the step `before` on.
    """
    incident = Incident.objects.select_related("assignee").filter(id=incident_id).first()
    if incident is None:
        return None
    now = clock.database_now()
    events = list(Event.objects.filter(incident=incident).order_by("-id")[: MOST_EVENTS + 1])
    beside = (IncidentEventKind.NOTE, IncidentEventKind.RETRIED)
    operations = Operation.objects.filter(incident=incident)
    return IncidentDetail(
        now=now,
        incident=incident,
        trend=_trends([incident.id], now)[incident.id],
        hit=_ever_hit(incident, before) if ever else _hit_now(incident, before),
        samples=_samples(incident),
        operations=list(
            operations.exclude(state=OperationState.DRAFT).order_by("-id")[:MOST_OPERATIONS]
        ),
        retried=_retried(incident),
        events=[(IncidentEventKind(what_of(event)).label, event) for event in events[:MOST_EVENTS]],
        seen=next((event.id for event in events if what_of(event) not in beside), 0),
        cut=len(events) > MOST_EVENTS,
    )


def action_on_incident(event: Event | None) -> UserAction | None:
    """Return the earlier action on an incident that an event records, if any."""
    if event is None or (did := DID.get(IncidentEventKind(what_of(event)))) is None:
        return None
    return UserAction.of_event(event, did)


def what_of(event: Event) -> str:
    """Return the action that an event records of its incident, in words."""
    return str(event.detail["what"])


def incident_by_id(incident_id: int) -> Incident | None:
    """Return an incident."""
    return Incident.objects.filter(id=incident_id).first()


def filtered(filters: IncidentFilters) -> QuerySet[Incident]:
    """Return the incidents that `filters` ask for, in no order."""
    matches = Incident.objects.all()
    if filters.state != "all":
        matches = matches.filter(state__in=[filters.state] if filters.state else OPEN)
    for name in ("workflow", "step", "agent"):
        if value := getattr(filters, name):
            matches = matches.filter(**{name: value})
    return matches.filter(assignee=filters.assignee) if filters.assignee else matches


def _with_trends(rows: Sequence[Incident], now: datetime) -> list[IncidentRow]:
    trends = _trends([row.id for row in rows], now)
    return [IncidentRow(incident=row, trend=trends[row.id]) for row in rows]


def _trends(known: Collection[int], now: datetime) -> dict[int, list[int]]:
    """Return how often incidents struck in each of the last hours, this one last."""
    this = now.replace(minute=0, second=0, microsecond=0)
    trends: dict[int, list[int]] = defaultdict(lambda: [0] * HOURS)
    since = this - timedelta(hours=HOURS - 1)
    hours = IncidentHour.objects.filter(incident__in=known, hour__gte=since)
    for incident, hour, failures in hours.values_list("incident_id", "hour", "failures"):
        place = int((hour - since) / timedelta(hours=1))
        if 0 <= place < HOURS:
            trends[incident][place] = failures
    return trends


def _steps() -> QuerySet[Step]:
    return Step.objects.select_related("task").defer("request", "result", "task__data")


def _hit_now(incident: Incident, before: int | None) -> HitPage:
    failed = _steps().filter(incident=incident, process_state=StepState.ERROR)
    if before:
        failed = failed.filter(id__lt=before)
    steps = list(failed.order_by("-id")[: HIT + 1])
    hits = IncidentHit.objects.filter(incident=incident, step__in=[step.id for step in steps])
    known = {hit.step_id: hit for hit in hits}
    return HitPage(
        rows=[(step, known.get(step.id)) for step in steps[:HIT]],
        older=steps[HIT - 1].id if len(steps) > HIT else None,
    )


def hit_of(incident_id: int, step_id: int) -> IncidentHit | None:
    """Return how an incident hit a step, if it has."""
    return IncidentHit.objects.filter(incident=incident_id, step=step_id).first()


def _ever_hit(incident: Incident, before: int | None) -> HitPage:
    matches = IncidentHit.objects.filter(incident=incident)
    if before:
        matches = matches.filter(step__lt=before)
    hits = list(matches.order_by("-step_id")[: HIT + 1])
    steps = _steps().in_bulk([hit.step_id for hit in hits])
    return HitPage(
        rows=[(steps[hit.step_id], hit) for hit in hits[:HIT] if hit.step_id in steps],
        older=hits[HIT - 1].step_id if len(hits) > HIT else None,
    )


def _samples(incident: Incident) -> list[Step]:
    """Return the newest steps that failed by it, with what they sent: those in error first."""
    whole = Step.objects.select_related("task").defer("result").filter(incident=incident)
    failed = list(whole.filter(process_state=StepState.ERROR).order_by("-id")[:SAMPLES])
    if failed:
        return failed
    live = (StepState.PENDING, StepState.PROCESSING)
    return list(whole.filter(process_state__in=live).order_by("-id")[:SAMPLES])


def _retried(incident: Incident) -> Retried:
    row = (0,) * 5
    if incident.tried_at is not None:
        row = sql.run(RETRIED, {"incident": incident.id, "limit": CAP + 1})[0]
    return sql.record(Retried, row)


def assignable() -> list[User]:
    """Return the people to whom an incident can be given: those who may acknowledge it."""
    people = User.objects.with_perm(
        "orchestration.acknowledge", backend="django.contrib.auth.backends.ModelBackend"
    )
    return list(people.order_by("username")[:200])
