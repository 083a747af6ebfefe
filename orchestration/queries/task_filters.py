"""Which tasks a search means, as a query whose every arm has an index."""

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from .. import registry
from ..models import Step, Task
from ..states import LIVE_TASK_STATES, StepState, TaskState
from .agent_facts import CAP, agent_holds
from .search_query import Bound, Filters, as_uuid

LOOKUPS = {"=": "", ">": "__gt", ">=": "__gte", "<": "__lt", "<=": "__lte"}


def matching(filters: Filters) -> QuerySet[Task]:
    """Return the tasks that a search means, in no order; for a page of them use `page`."""
    found = Task.objects.filter(_of_task(filters))
    if filters.by_step:
        found = found.filter(id__in=current_steps(filters).values("task_id"))
    return found


def page(
    filters: Filters,
    limit: int,
    *,
    older: UUID | None = None,
    newer: UUID | None = None,
    oldest_first: bool = False,
) -> list[UUID]:
    """Return the ids of the first `limit` tasks of a search in that order, past `older` or `newer`."""
    order = "" if oldest_first else "-"
    bounds = Q()
    if older:
        bounds &= Q(id__lt=older)
    if newer:
        bounds &= Q(id__gt=newer)
    if not filters.by_step:
        found = Task.objects.filter(_of_task(filters), bounds).order_by(f"{order}id")
        return list(found.values_list("id", flat=True)[:limit])
    return list(_tasks_by_step(filters, bounds, order, limit)[:limit])


def ids(filters: Filters) -> "QuerySet[Any, UUID]":
    """Return the ids of all tasks that a search means, in no order."""
    if filters.by_step:
        return _united(_ids_by_step(filters))
    return matching(filters).order_by().values_list("id", flat=True)


def count(filters: Filters) -> int:
    """Return how many tasks a search means; not counted further than one past `CAP`."""
    if not filters.by_step:
        return matching(filters).order_by()[: CAP + 1].count()
    # limit the steps before they are grouped by task: else all of them would be read
    arms = [arm[: CAP + 1] for arm in _ids_by_step(filters)]
    if len(arms) == 1 and not _has_bounded(filters):
        return int(arms[0].aggregate(tasks=Count("task_id", distinct=True))["tasks"])
    return min(CAP + 1, _united(arms).count())


def _tasks_by_step(filters: Filters, bounds: Q, order: str, limit: int) -> "QuerySet[Step, UUID]":
    """Return tasks by the steps they stand at, `limit` of each arm: read in order, where it can be.

    What failed, which may be much, goes along step_failed, from the index alone; what is at work is
    as much as the windows hold; what waits goes along step_waiting. What failed comes first.
    """
    arms = _ids_by_step(filters, bounds)
    if not arms or _has_bounded(filters):
        return _united(arms).order_by(f"{order}task_id")
    failed = arms[0].order_by(f"{order}task_id").distinct()
    if not arms[1:]:
        return failed
    # of the others there are few: asked for in order, they would be looked for in all there is
    return _united([failed[:limit], *arms[1:]]).order_by(f"{order}task_id")


def _united(arms: list["QuerySet[Step, UUID]"]) -> "QuerySet[Step, UUID]":
    if not arms:
        return Step.objects.none().values_list("task_id", flat=True)
    return arms[0].union(*arms[1:]) if arms[1:] else arms[0]


def _ids_by_step(filters: Filters, bounds: Q | None = None) -> list["QuerySet[Step, UUID]"]:
    """Return the ids of tasks by the steps they stand at, those of each arm by themselves.

    What is true of few tasks, most of the time, is read once and intersected: of such rows statistics may
    show none, and by a join the planner would look through all of them for each step, as in an outage
    that made them many since.
    """
    of_task = _of_task(replace(filters, state="", trouble="")) & (bounds or Q())
    found = [
        _narrowed(Step.objects.filter(arm, _through_steps(of_task)), filters)
        .order_by()
        .values_list("task_id", flat=True)
        for arm in _arms(filters)
    ]
    if not _has_bounded(filters):
        return found
    tasks = Task.objects.filter(_of_task(_bounded(filters))).order_by().values_list("id", flat=True)
    return [arm.intersection(tasks) for arm in found]


def _bounded(filters: Filters) -> Filters:
    """Return what is asked of tasks that have not ended; that one is in error follows from its step."""
    state = "" if filters.state == TaskState.ERROR else filters.state
    return Filters(state=state, trouble=filters.trouble)


def _has_bounded(filters: Filters) -> bool:
    return _bounded(filters) != Filters()


def _through_steps(condition: Q) -> Q:
    """Return a condition on tasks as one on their steps; ids are the steps' own column."""
    children: list[Any] = []
    for child in condition.children:
        if isinstance(child, Q):
            children.append(_through_steps(child))
        elif isinstance(child, tuple):
            name, value = child
            own = name == "id" or name.startswith("id__")
            children.append((f"task_{name}" if own else f"task__{name}", value))
    return Q.create(children, condition.connector, condition.negated)


def left_out(filters: Filters) -> list[str]:
    """Return the workflows whose tasks a search leaves out, as long as nothing is wrong with them."""
    if not filters.foreground:
        return []
    return sorted(one.name for one in registry.workflows.values() if one.background)


def _of_task(filters: Filters) -> Q:
    """Return what a search asks of the task itself."""
    found = _shown(filters)
    for word in filters.words:
        found &= _called(word, filters)
    for name in ("state", "workflow", "contact"):
        if asked := getattr(filters, name):
            found &= Q(**{name: asked})
    if filters.reference:
        found &= Q(reference__startswith=filters.reference)
    if filters.value:
        found &= _compared("value", filters.value)
    if filters.trouble:
        found &= _in_trouble(filters.trouble)
    # ids are made in the order of time, so the primary key serves
    if filters.since:
        found &= Q(id__gte=_first_id(filters.since))
    if filters.until:
        found &= Q(id__lt=_first_id(filters.until))
    return found


def _shown(filters: Filters) -> Q:
    """Return which tasks are not left out: also such as are in trouble, or named in full."""
    background = left_out(filters)
    if not background:
        return Q()
    shown = ~Q(workflow__in=background) | Q(state=TaskState.ERROR) | _in_trouble("overdue")
    for word in filters.words:
        shown |= Q(reference=word)
        if known := as_uuid(word):
            shown |= Q(id=known)
    return shown


def _called(word: str, filters: Filters) -> Q:
    """Return what a plain word may be: each of these is one index's business."""
    called = (
        Q(reference__startswith=word)
        | Q(label__startswith=word, label__gt="")  # as in the conditions of their indexes
        | Q(label__startswith=word.upper(), label__gt="")
    )
    if known := as_uuid(word):
        called |= Q(id=known)
    if filters.personal:
        called |= Q(contact=word.lower(), contact__gt="")
    return called


def _compared(field: str, bound: Bound) -> Q:
    found = Q(**{f"{field}{LOOKUPS[bound.sign]}": bound.number})
    if field == "value" and bound.sign in ("<", "<="):
        found &= Q(value__gt=0)  # with a value at all, as in the condition of its index
    return (
        found & Q(currency__in=(bound.currency, bound.currency.lower()))
        if bound.currency
        else found
    )


def _first_id(moment: datetime) -> UUID:
    """Return the least id that a task made at `moment` can have."""
    milliseconds = max(0, int(moment.timestamp() * 1000))
    return UUID(int=min(milliseconds << 80, (1 << 128) - 1))


def _in_trouble(trouble: str) -> Q:
    steps = Step.objects.filter(process_state=StepState.PENDING)
    match trouble:
        case "overdue":
            return Q(overdue=True, state__in=LIVE_TASK_STATES)
        case "retrying":
            steps = steps.filter(run_after__isnull=False)
        case "held":
            steps = steps.filter(_kept_back())
    return Q(id__in=steps.values("task_id"))


def _kept_back() -> Q:
    """Return which pending steps a hold keeps: one on their agent, or on everything, marks none.

    The agents are read first and named: so each of them, and what is marked, goes along its index.
    """
    held = agent_holds()
    if "" in held:
        return Q()
    marked = Q(held_by__isnull=False)
    return marked | Q(agent__in=sorted(held)) if held else marked


def current_steps(filters: Filters) -> QuerySet[Step]:
    """Return the current steps of tasks that a search asks for."""
    arms = Q(pk__in=[])
    for arm in _arms(filters):
        arms |= arm
    return _narrowed(Step.objects.filter(arms), filters)


def _narrowed(steps: QuerySet[Step], filters: Filters) -> QuerySet[Step]:
    if filters.step:
        steps = steps.filter(name=filters.step)
    if filters.agent:
        steps = steps.filter(agent=filters.agent)
    if filters.error:
        steps = steps.filter(error_code__startswith=filters.error)
    if filters.attempts:
        steps = steps.filter(_compared("attempt", filters.attempts))
    return steps


def _arms(filters: Filters) -> list[Q]:
    """Return which steps a task can stand at: each has a partial index."""
    failed = Q(process_state=StepState.ERROR)
    if filters.alert:
        return [Q(alert=filters.alert)]
    if filters.incident:
        return [failed & Q(incident=filters.incident)]
    # of a task in error it is a step in error that says where it stands, and of no other task
    at_work = [Q(process_state=StepState.PROCESSING), Q(process_state=StepState.PENDING)]
    match filters.state:
        case TaskState.ERROR:
            return [failed]
        case TaskState.PROCESSED | TaskState.UNDONE:
            return []
        case "":
            # an overdue task has not ended: none of its steps is in error
            return at_work if filters.trouble == "overdue" else [failed, *at_work]
    return [at_work[0] | at_work[1]]
