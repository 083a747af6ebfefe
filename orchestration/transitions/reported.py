"""Record what is reported of steps that await their result: awaiting → processed, skipped or error."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from django.db import transaction

from ..decisions.progress import Refusal, StepView, after_reply
from ..models import Wait
from ..models.history import EventKind
from ..states import LOCAL, Direction, Outcome, StepState
from . import external_ids, moves, waits
from .change import Change
from .handled import Handled
from .late_effects import close_undone
from .locked_task import lock
from .rejections import Rejection, reject
from .settle import finish
from .waits import Report

TO_COME = (StepState.WAITING, StepState.PENDING, StepState.PROCESSING, StepState.ERROR)


@transaction.atomic
def report(reports: Sequence[tuple[UUID, str, Report]]) -> list[Refusal | None]:
    """Record how steps of different tasks end that await their results; return why not, or None, for each.

    A step is named by its name, or that of the signal that it awaits. What comes before the step awaits it is
    kept until then; of several reports the first counts.
    """
    changes = lock([task for task, *_ in reports])
    subjects: list[tuple[Change | None, StepView | None, Report]] = []
    for task, name, how in reports:
        change = changes.get(task)
        subjects.append((change, _named(change, name, how.of) if change else None, how))
    accepted_as = _accepted_as([step for _, step, how in subjects if step and how.of])
    ended: list[tuple[Change, StepView, Report]] = []
    early: list[tuple[StepView, Report]] = []
    refusals: list[Refusal | None] = []
    for change, step, how in subjects:
        refusal = _why_not(change, step, how, accepted_as)
        if refusal is None and change and step:
            if step.state == StepState.AWAITING:
                ended.append((change, step, how))
            elif step.state in TO_COME and not change.undoes(step):
                early.append((step, how))
        refusals.append(refusal)
    waits.keep(early)
    apply(ended)
    for actor in dict.fromkeys(how.actor for *_, how in ended):
        finish([change for change, _, how in ended if how.actor == actor], by=actor)
    return refusals


def _accepted_as(steps: Collection[StepView]) -> dict[int, str]:
    """Return what services call what steps await of them, by step: no query without steps."""
    if not steps:
        return {}
    rows = Wait.objects.filter(step__in=[step.id for step in steps])
    return dict(rows.values_list("step", "external_id"))


def _why_not(
    change: Change | None, step: StepView | None, how: Report, accepted_as: Mapping[int, str]
) -> Refusal | None:
    """Return why a report is refused; None also for one that says again what is known."""
    if change is None:
        return Refusal.NO_SUCH_TASK
    if step is None:
        return Refusal.NO_SUCH_STEP
    if _awaits_children(step):
        return Refusal.HAS_CHILDREN
    if step.state == StepState.AWAITING:
        of_another = how.of and how.of != accepted_as.get(step.id)
        return Refusal.OTHER_ATTEMPT if of_another else None
    if step.state in TO_COME and not change.undoes(step):
        return None
    done_so = how.outcome == Outcome.DONE and how.result == step.result
    return None if done_so else Refusal.REPORTED


def _awaits_children(step: StepView) -> bool:
    """Return whether the children of a step end it, or their undo its own undo."""
    return step.makes_children or (step.agent == LOCAL and step.direction == Direction.UNDO)


def _named(change: Change, name: str, of: str) -> StepView | None:
    """Return a step by its name, or by that of its signal.

    Of a task being undone it is the one of both steps that the service accepted under the id `of`, or else
    the undo, if that waits.
    """
    steps = [
        step
        for step in change.steps.values()
        if step.name == name or (step.flow is not None and step.flow.signal == name)
    ]
    known = external_ids.steps_of(change.id, of) if of and len(steps) > 1 else set()
    steps.sort(
        key=lambda step: (
            step.id not in known,
            step.state != StepState.AWAITING,
            step.direction != Direction.DO,
        )
    )
    return steps[0] if steps else None


def apply(reported: Collection[tuple[Change, StepView, Report | None]]) -> None:
    """Decide about what is reported of steps that await it; the caller writes the changes.

    What was reported of a step before it awaited that comes first, or alone where no report is given.
    """
    early = _early_reports([step.id for _, step, _ in reported])
    by_actor: dict[str, list[Rejection]] = defaultdict(list)
    for change, step, later in reported:
        report = early.get(step.id, later)
        if report is None:
            continue
        after = after_reply(
            step, report.outcome, report.result,
            undoing=change.undoes(step), in_doubt=False, code=report.code[:100],
        )  # fmt: skip
        done = after.state == StepState.PROCESSED
        change.move(
            moves.REPORTED,
            after if done else after.altered(state=StepState.AWAITING),
            outcome=report.outcome,
            result=report.result,
            code=after.error_code,
            message=report.message,
            in_doubt=False,
        )
        reason = report.code or report.outcome
        change.note(after, EventKind.REPORTED, by=report.actor, reason=reason, report=report.id)
        if done and step.direction == Direction.UNDO:
            close_undone(after, change)
        elif after.state == StepState.SKIPPED:
            change.skip(after)
        elif after.state == StepState.ERROR:
            cause = change.cause(after, report.outcome, report.code, report.message)
            change.count(after, cause, report.message)
            rejection = Rejection(change, after, report.code, report.message)
            by_actor[report.actor].append(rejection)
    for actor, rejected in by_actor.items():
        reject(rejected, by=actor)


def _early_reports(steps: Collection[int]) -> dict[int, Report]:
    """Return what was reported of steps before they awaited it; not what is of an earlier request."""
    if not steps:
        return {}
    rows = Wait.objects.filter(step__in=steps, report__isnull=False).values_list(
        "step", "external_id", "report"
    )
    return {
        step: Report(**report)
        for step, known, report in rows
        if report and report["of"] in {"", known}
    }


def reported_early(limit: int, excluded: Collection[UUID] = ()) -> list[UUID]:
    """Return the tasks of steps whose result was reported before they awaited it (index wait_reported)."""
    rows = Wait.objects.filter(report__isnull=False, awaited_at__isnull=False)
    tasks = rows.exclude(task__in=excluded).order_by("step").values_list("task_id", flat=True)
    return list(dict.fromkeys(tasks[:limit]))


@transaction.atomic
def apply_early(tasks: Collection[UUID]) -> Handled:
    """Record what was reported of steps before they awaited it; skip tasks that others have locked."""
    changes = lock(tasks, wait=False)
    rows = Wait.objects.filter(task__in=changes, report__isnull=False, awaited_at__isnull=False)
    early = list(rows)
    steps = [(changes[wait.task_id], changes[wait.task_id].steps[wait.step_id]) for wait in early]
    apply([(change, step, None) for change, step in steps if step.state == StepState.AWAITING])
    rows.update(report=None)  # what is left is of an earlier request
    handled = {wait.task_id for wait in early}
    done = Handled(handled=len(handled))
    done.add(finish([changes[task] for task in handled], by="scheduler"))
    return done
