"""Which tasks a search means, as queries whose every arm has an index."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Greatest

from ...database.capped_counts import CAP
from ...models import Step, Task
from ...states import StepState, TaskState
from .search_query import Query
from .search_terms import Filters
from .task_conditions import (
    OF_STEP,
    OF_TASK,
    arms_of,
    background_workflows,
    current_steps,
    narrowed,
    of_task,
    whole,
)

Ids = QuerySet[Any, UUID]
# For the transaction of a search. Merged along step_once, all steps would be read for the few that wait; and
# along an index up to a limit, several processes read more than they save.
WAYS = "SET LOCAL enable_mergejoin = off; SET LOCAL max_parallel_workers_per_gather = 0;"
NEXT = 1_000  # tasks of any kind that are looked at first


def belonging(query: Query, ids: Collection[UUID]) -> set[UUID]:
    """Return those of these tasks that match a search."""
    matched: set[UUID] = set()
    for filters in query.alternatives:
        matched.update(matching(filters).filter(id__in=ids).values_list("id", flat=True))
    return matched


def matching(filters: Filters) -> QuerySet[Task]:
    """Return the tasks that are found in one way, in no order."""
    return Task.objects.filter(whole(filters, OF_TASK))


def page(
    query: Query,
    limit: int,
    *,
    older: UUID | None = None,
    newer: UUID | None = None,
    oldest_first: bool = False,
) -> list[UUID]:
    """Return the ids of the first `limit` tasks of a search in that order, past `older` or `newer`."""
    bounds: dict[str, Any] = {}
    if older:
        bounds["lt"] = older
    if newer:
        bounds["gt"] = newer
    matched = [
        id_
        for filters in query.alternatives
        for id_ in _page(filters, limit, bounds, oldest_first=oldest_first)
    ]
    if not query.alternatives[1:]:
        return matched
    return sorted(set(matched), reverse=not oldest_first)[:limit]


def _page(
    filters: Filters, limit: int, bounds: dict[str, Any], *, oldest_first: bool
) -> list[UUID]:
    order = "" if oldest_first else "-"
    if not filters.by_step:
        past = Q(**{f"id__{way}": id_ for way, id_ in bounds.items()})
        tasks = Task.objects.filter(of_task(filters, OF_TASK), past).order_by(f"{order}id")
        return list(tasks.values_list("id", flat=True)[:limit])
    past = Q(**{f"task_id__{way}": id_ for way, id_ in bounds.items()})
    matched = _among_next(filters, bounds, order, limit)
    return (
        matched
        if len(matched) >= limit
        else list(_tasks_by_step(filters, past, order, limit)[:limit])
    )


def _among_next(filters: Filters, bounds: dict[str, Any], order: str, limit: int) -> list[UUID]:
    """Return tasks by the steps they stand at, of the next that there are in the order of the list.

    If these are enough, all that is at work or waits need not be read: in an outage that is much.
    """
    tasks = Task.objects.filter(**{f"id__{way}": id_ for way, id_ in bounds.items()})
    following = tasks.order_by(f"{order}id").values("id")[:NEXT]
    steps = current_steps(filters).filter(of_task(filters, OF_STEP), task_id__in=following)
    matched = steps.order_by(f"{order}task_id").values_list("task_id", flat=True).distinct()
    return list(matched[:limit])


def ids(query: Query) -> Ids:
    """Return the ids of all tasks that a search means, in no order; one may come more than once."""
    return _united([arm for filters in query.alternatives for arm in _ids(filters)])


def count(query: Query, most: int = CAP) -> int:
    """Return how many tasks a search means; not counted further than one past `most`."""
    # limit the arms before they are united: else all of them would be read
    arms = [arm[: most + 1] for filters in query.alternatives for arm in _ids(filters)]
    if not arms:
        return 0
    (first, *_) = query.alternatives
    if len(arms) == 1 and first.by_step and not _has_bounded(first):
        return int(arms[0].aggregate(tasks=Count("task_id", distinct=True))["tasks"])
    return arms[0].count() if len(arms) == 1 else min(most + 1, _united(arms).count())


def failed_steps(query: Query) -> "QuerySet[Step, int] | None":
    """Return the failed steps that a search means by what it asks of steps; None if it asks nothing.

    Of tasks that are found in another way, all failed steps are meant.
    """
    if not any(filters.by_step for filters in query.alternatives):
        return None
    arms = [
        current_steps(filters)
        .filter(of_task(filters, OF_STEP), process_state=StepState.ERROR)
        .order_by()
        .values_list("id", flat=True)
        for filters in query.alternatives
    ]
    return arms[0].union(*arms[1:]) if arms[1:] else arms[0]


def _tasks_by_step(filters: Filters, past: Q, order: str, limit: int) -> "QuerySet[Any, UUID]":
    """Return tasks by the steps they stand at, `limit` of each arm: read in order, where it can be.

    What failed, which may be much, goes along step_in_error, from the index alone. What is at work or
    waits is read by its own index and sorted: by a value that no index has, or it would be looked
    for in the order of the list, in all there is.
    """
    arms = _ids_by_step(filters, past)
    if not arms or _has_bounded(filters):
        return _united(arms).order_by(f"{order}task_id")
    failed = arms[0].order_by(f"{order}task_id").distinct()
    if not arms[1:]:
        return failed
    others = [_sorted_apart(arm, order)[:limit] for arm in arms[1:]]
    return _united([failed[:limit], *others]).order_by(f"{order}task_id")


def _sorted_apart(arm: Ids, order: str) -> Ids:
    places = arm.values_list(Greatest("task_id", "task_id"), flat=True)
    return places.order_by(f"{order}greatest1").distinct()


def _united(arms: list[Ids]) -> Ids:
    if not arms:
        return Step.objects.none().values_list("task_id", flat=True)
    return arms[0].union(*arms[1:]) if arms[1:] else arms[0]


def _ids(filters: Filters) -> list[Ids]:
    if filters.by_step:
        return _ids_by_step(filters)
    matched = Task.objects.filter(of_task(filters, OF_TASK)).order_by()
    return [matched.values_list("id", flat=True)]


def _ids_by_step(filters: Filters, past: Q | None = None) -> list[Ids]:
    """Return the ids of tasks by the steps they stand at, those of each arm by themselves.

    What is true of few tasks, most of the time, is read once and intersected: of such rows statistics may
    show none, and by a join the planner would look through all of them for each step, as in an outage
    that made them many since. What must not be true is then looked for in these few alone.
    """
    apart = _has_bounded(filters)
    without = () if apart else filters.without
    rest = of_task(replace(filters, state="", troubles=(), without=without), OF_STEP) & (
        past or Q()
    )
    arms = [
        narrowed(Step.objects.filter(arm, rest), filters)
        .order_by()
        .values_list("task_id", flat=True)
        for arm in arms_of(filters)
    ]
    if not apart:
        return arms
    bounded = replace(_bounded(filters), without=filters.without)
    few = Task.objects.filter(of_task(bounded, OF_TASK)).order_by()
    return [arm.intersection(few.values_list("id", flat=True)) for arm in arms]


def _bounded(filters: Filters) -> Filters:
    """Return what is asked of tasks that have not ended; that one is in error follows from its step."""
    state = "" if filters.state == TaskState.ERROR else filters.state
    return Filters(state=state, troubles=filters.troubles)


def _has_bounded(filters: Filters) -> bool:
    return _bounded(filters) != Filters()


def left_out(query: Query) -> list[str]:
    """Return the workflows whose tasks a search leaves out, as long as nothing is wrong with them."""
    return background_workflows() if query.foreground else []
