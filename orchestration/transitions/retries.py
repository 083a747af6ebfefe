"""Make failed steps pending again, as was decided: processing → pending (P10, P11, P26)."""

from collections.abc import Sequence

from ..decisions.recovery import Retry, Undo
from ..models import Event
from ..models.history import EventKind
from ..states import Direction, StepState
from . import moves, reports
from .failures import Failed
from .undo_requests import WAIT, request


def retry(steps: Sequence[tuple[Failed, Retry]], *, by: str) -> None:
    """Make failed steps pending again, as decided."""
    for step, again in steps:
        _make_pending(step, again)
    events = [_retried(step, again, by) for step, again in steps]
    reports.retried([(step.change, step.view) for step, _ in steps], events)


def ask_to_undo(steps: Sequence[tuple[Failed, Undo]], *, by: str) -> None:
    """Ask that the tasks of failed steps be undone; the steps wait until a scheduler begins that."""
    for step, undo in steps:
        _make_pending(step, Retry(failure_count=undo.failure_count, wait=WAIT))
    request([(step.change, step.view, _why(step, undo)) for step, undo in steps], by=by)


def _why(step: Failed, undo: Undo) -> str:
    what = step.failure.code or step.failure.outcome
    return f"{step.view.name} failed {undo.failure_count} times ({what})"


def _make_pending(step: Failed, again: Retry) -> None:
    failed = step.view
    step.change.move(
        moves.RETRIED,
        failed.altered(state=StepState.PENDING, generation=failed.generation + again.new_key),
        failure_count=again.failure_count,
        extended_waits=again.extended_waits,
        wait=again.wait,
        outcome=failed.outcome,
        code=step.failure.code,
        message=step.message,
        in_doubt=failed.in_doubt,
        new_key=again.new_key,
        probing_outcome=step.change.undoes(step.view) and step.failure.direction == Direction.DO,
        isolated=again.isolated,
        incident=None,
        own_trouble=failed.own_trouble,
    )


def _retried(step: Failed, again: Retry, by: str) -> Event:
    what = step.failure.code or step.failure.outcome
    if again.extended:
        kind = EventKind.WAITS
        reason = f"extended wait {again.extended_waits}: again in {again.wait:.0f} s"
    elif again.new_key:
        kind, reason = EventKind.SETTLED, "the service knows of no effect: again, with a new key"
    elif not again.counted:
        kind, reason = EventKind.EXCUSED, f"{what}: again in {again.wait:.1f} s"
    else:
        kind = EventKind.RETRY
        reason = f"failure {again.failure_count} ({what}): again in {again.wait:.1f} s"
    return step.change.note(step.view, kind, by=by, reason=reason)
