"""Which tasks a search means, as a query whose every arm has an index."""

from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from ..models import Step, Task
from ..states import LIVE_TASK_STATES, StepState, TaskState
from .agents import CAP
from .search import Bound, Filters, as_uuid

LOOKUPS = {"=": "", ">": "__gt", ">=": "__gte", "<": "__lt", "<=": "__lte"}


def matching(filters: Filters) -> QuerySet[Task]:
    """Return the tasks that a search means, in no order."""
    found = Task.objects.all()
    for word in filters.words:
        found = found.filter(_called(word, filters))
    exact = ("state", "workflow", "contact")
    found = found.filter(**{name: asked for name in exact if (asked := getattr(filters, name))})
    if filters.reference:
        found = found.filter(reference__startswith=filters.reference)
    if filters.value:
        found = found.filter(_compared("value", filters.value))
    if filters.trouble:
        found = found.filter(_in_trouble(filters.trouble))
    if filters.standing:
        found = found.filter(id__in=standing(filters).values("task_id"))
    return _received(found, filters)


def _received(found: QuerySet[Task], filters: Filters) -> QuerySet[Task]:
    # ids are made in the order of time, so the primary key serves
    if filters.since:
        found = found.filter(id__gte=_first_id(filters.since))
    if filters.until:
        found = found.filter(id__lt=_first_id(filters.until))
    return found


def count(filters: Filters) -> int:
    """Return how many tasks a search means; not counted further than one past `CAP`."""
    return matching(filters).order_by()[: CAP + 1].count()


def _called(word: str, filters: Filters) -> Q:
    """Return what a plain word may be: each of these is one index's business."""
    called = (
        Q(reference__startswith=word)
        | Q(label__startswith=word)
        | Q(label__startswith=word.upper())
    )
    if known := as_uuid(word):
        called |= Q(id=known)
    if filters.personal:
        called |= Q(contact=word.lower())
    return called


def _compared(field: str, bound: Bound) -> Q:
    return Q(**{f"{field}{LOOKUPS[bound.sign]}": bound.number})


def _first_id(moment: datetime) -> UUID:
    """Return the least id that a task made at `moment` can have."""
    milliseconds = max(0, int(moment.timestamp() * 1000))
    return UUID(int=min(milliseconds << 80, (1 << 128) - 1))


def _in_trouble(trouble: str) -> Q:
    steps = Step.objects.all()
    match trouble:
        case "overdue":
            return Q(overdue=True, state__in=LIVE_TASK_STATES)
        case "retrying":
            steps = steps.filter(process_state=StepState.PENDING, run_after__isnull=False)
        case "held":
            steps = steps.filter(held_by__isnull=False)
    return Q(id__in=steps.values("task_id"))


def standing(filters: Filters) -> QuerySet[Step]:
    """Return the steps that tasks stand at, so far as they are asked for."""
    steps = Step.objects.filter(_of(filters))
    if filters.step:
        steps = steps.filter(name=filters.step)
    if filters.agent:
        steps = steps.filter(agent=filters.agent)
    if filters.error:
        steps = steps.filter(error_code__startswith=filters.error)
    if filters.attempts:
        steps = steps.filter(_compared("attempt", filters.attempts))
    return steps


def _of(filters: Filters) -> Q:
    """Return which steps a task can stand at: each arm of the choice has a partial index."""
    failed = Q(process_state=StepState.ERROR)
    if filters.alert:
        return Q(alert=filters.alert)
    if filters.incident:
        return failed & Q(incident=filters.incident)
    if filters.state == TaskState.ERROR:
        return failed  # of a task in error it is a step in error that says where it stands
    return (
        failed
        | Q(process_state=StepState.PROCESSING)
        | Q(process_state=StepState.PENDING, run_after__isnull=True)
        | Q(process_state=StepState.PENDING, run_after__isnull=False)
    )
