"""Searches as conditions on tasks and on their current steps."""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from ... import registry
from ...models import Step, Wait
from ...states import LIVE_TASK_STATES, StepState, TaskState
from ...waiting.agent_facts import agent_holds
from .search_terms import Bound, Filters, as_uuid

LOOKUPS = {"=": "", ">": "__gt", ">=": "__gte", "<": "__lt", "<=": "__lte"}


class Path(NamedTuple):
    """Where the fields of a task are, and its id, seen from the rows that are read."""

    fields: str
    id: str


OF_TASK, OF_STEP = Path("", "id"), Path("task__", "task_id")


def background_workflows() -> list[str]:
    """Return the workflows whose tasks only serve others."""
    return sorted(workflow.name for workflow in registry.workflows.values() if workflow.background)


def have_children() -> bool:
    """Return whether tasks of any workflow have children."""
    return any(step.workflow for workflow in registry.workflows.values() for step in workflow.steps)


def whole(filters: Filters, at: Path, *, alone: bool = False) -> Q:
    """Return filters as one condition; `alone`: each row is checked individually."""
    condition = of_task(filters, at, alone=alone)
    if not filters.by_step:
        return condition
    if not alone:
        return condition & Q(**{f"{at.id}__in": current_steps(filters).values("task_id")})
    standing = Q(pk__in=[])
    for arm in _standing(filters, at):
        standing |= arm
    return condition & standing


def by_arm(filters: Filters, at: Path) -> list[Q]:
    """Return filters as alternative conditions: each has one index of steps."""
    condition = of_task(filters, at)
    return [condition & arm for arm in _standing(filters, at)] if filters.by_step else [condition]


def _standing(filters: Filters, at: Path) -> list[Q]:
    """Return one condition per kind of current step: in error, processing or due."""
    steps = (narrowed(Step.objects.filter(arm), filters) for arm in arms_of(filters))
    return [Q(Exists(rows.filter(task_id=OuterRef(at.id)))) for rows in steps]


def _lacking(filters: Filters, at: Path) -> Q:
    """Return the negation of filters. Each arm of steps is excluded by its own join."""
    if filters.by_step and not of_task(filters, at, alone=True):
        condition = Q()
        for arm in _standing(filters, at):
            condition &= ~arm
        return condition
    return ~whole(filters, at, alone=True)


def of_task(filters: Filters, at: Path, *, alone: bool = False) -> Q:
    """Return the conditions on the task itself, negated ones included."""
    condition = _shown(filters, at)
    for word in filters.words:
        condition &= _called(word, filters, at)
    for name in ("state", "workflow", "contact"):
        if asked := getattr(filters, name):
            condition &= Q(**{f"{at.fields}{name}": asked})
    condition &= _of_others(filters, at)
    for bound in filters.values:
        condition &= _compared("value", bound, at)
    for trouble in filters.troubles:
        condition &= _in_trouble(trouble, at, alone=alone)
    condition &= _received(filters, at)
    for other in filters.without:
        condition &= _lacking(other, at)
    return condition


def _of_others(filters: Filters, at: Path) -> Q:
    """Return the conditions on references: the task's, and those of the tasks that it belongs to."""
    condition = Q()
    if filters.reference:
        condition &= Q(**{f"{at.fields}reference__startswith": filters.reference})
    if filters.about:
        about = f"{at.fields}about_reference"
        # the second as in the condition of task_by_about
        condition &= Q(**{f"{about}__startswith": filters.about, f"{about}__gt": ""})
    if filters.parent:
        condition &= Q(**{f"{at.fields}parent__in": _steps_of(filters.parent)})
    return condition


def _steps_of(parent: str) -> QuerySet[Step, int]:
    """Return the steps of a task by its reference or id: their children are found by task_of_parent."""
    named = Q(task__reference=parent)
    if known := as_uuid(parent):
        named |= Q(task=known)
    return Step.objects.filter(named).values_list("id", flat=True)


def _received(filters: Filters, at: Path) -> Q:
    """Return the condition on the time of receipt: ids are in order of time, so the primary key serves."""
    condition = Q()
    if filters.since:
        condition &= Q(**{f"{at.id}__gte": _first_id(filters.since)})
    if filters.until:
        condition &= Q(**{f"{at.id}__lt": _first_id(filters.until)})
    return condition


def _shown(filters: Filters, at: Path) -> Q:
    """Return which tasks are not left out: also such as are in trouble, or named in full."""
    background = background_workflows() if filters.foreground else []
    children = filters.foreground and have_children()
    if not background and not children:
        return Q()
    shown = ~Q(**{f"{at.fields}workflow__in": background}) if background else Q()
    if children:
        shown &= Q(**{f"{at.fields}parent__isnull": True})
    shown |= Q(**{f"{at.fields}state": TaskState.ERROR}) | _in_trouble("overdue", at)
    for word in filters.words:
        shown |= Q(**{f"{at.fields}reference": word})
        if known := as_uuid(word):
            shown |= Q(**{at.id: known})
    return shown


def _called(word: str, filters: Filters, at: Path) -> Q:
    """Return the condition that a plain word matches: each alternative has its own index."""
    reference, label, contact = (f"{at.fields}{name}" for name in ("reference", "label", "contact"))
    called = Q(**{f"{reference}__startswith": word})
    matches = filters.matches.get(word)
    labels = [word, word.upper(), *(matches.labels if matches else ())]
    for beginning in dict.fromkeys(labels):
        # as in the condition of its index
        called |= Q(**{f"{label}__startswith": beginning, f"{label}__gt": ""})
    if matches and matches.references:
        called |= Q(**{f"{reference}__in": list(matches.references)})
    if known := as_uuid(word):
        called |= Q(**{at.id: known})
    if filters.personal:
        called |= Q(**{contact: word.lower(), f"{contact}__gt": ""})
    return called


def _compared(field: str, bound: Bound, at: Path) -> Q:
    name = f"{at.fields}{field}"
    condition = Q(**{f"{name}{LOOKUPS[bound.sign]}": bound.number})
    if field == "value" and bound.sign in ("<", "<="):
        condition &= Q(
            **{f"{name}__gt": 0}
        )  # with a value at all, as in the condition of its index
    if bound.currency:
        either = (bound.currency, bound.currency.lower())
        condition &= Q(**{f"{at.fields}currency__in": either})
    return condition


def _first_id(moment: datetime) -> UUID:
    """Return the least id that a task made at `moment` can have."""
    milliseconds = max(0, int(moment.timestamp() * 1000))
    return UUID(int=min(milliseconds << 80, (1 << 128) - 1))


def _in_trouble(trouble: str, at: Path, *, alone: bool = False) -> Q:
    steps: QuerySet[Any] = Step.objects.filter(process_state=StepState.PENDING)
    match trouble:
        case "overdue":
            live = {f"{at.fields}overdue": True, f"{at.fields}state__in": LIVE_TASK_STATES}
            return Q(**live)
        case "awaiting":
            steps = Step.objects.filter(process_state=StepState.AWAITING)
        case "delayed":  # until its time, such a step has a row of its own
            steps = Wait.objects.filter(awaited_at=None, due_at__isnull=False)
        case "retrying":
            steps = steps.filter(run_after__isnull=False, attempt__gt=0)
        case "held":
            steps = steps.filter(_kept_back())
    if alone:
        return Q(Exists(steps.filter(task_id=OuterRef(at.id))))
    return Q(**{f"{at.id}__in": steps.values("task_id")})


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
    """Return the current steps of tasks that a way asks for."""
    arms = Q(pk__in=[])
    for arm in arms_of(filters):
        arms |= arm
    return narrowed(Step.objects.filter(arms), filters)


def narrowed(steps: QuerySet[Step], filters: Filters) -> QuerySet[Step]:
    """Return those of `steps` that a way asks for."""
    if filters.step:
        steps = steps.filter(name=filters.step)
    if filters.agent:
        steps = steps.filter(agent=filters.agent)
    if filters.error:
        steps = steps.filter(error_code__startswith=filters.error)
    for bound in filters.attempts:
        steps = steps.filter(_compared("attempt", bound, OF_TASK))
    return steps


def arms_of(filters: Filters) -> list[Q]:
    """Return which steps a task can stand at: each has a partial index."""
    failed = Q(process_state=StepState.ERROR)
    if filters.alert:
        return [Q(alert=filters.alert)]
    if filters.incident:
        return [failed & Q(incident=filters.incident)]
    # of a task in error it is a step in error that says where it stands, and of no other task
    states = (StepState.PROCESSING, StepState.PENDING, StepState.AWAITING)
    at_work = [Q(process_state=state) for state in states]
    match filters.state:
        case TaskState.ERROR:
            return [failed]
        case TaskState.PROCESSED | TaskState.UNDONE:
            return []
        case "":
            # an overdue task has not ended: none of its steps is in error
            return at_work if "overdue" in filters.troubles else [failed, *at_work]
    return [at_work[0] | at_work[1] | at_work[2]]
