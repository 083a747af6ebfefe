"""What the log and the traces say of changed tasks, once their change is committed."""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from django.db import transaction

from ..decisions.progress import StepView
from ..models import Event
from ..payloads.keys import step_key
from ..states import FINAL_TASK_STATES, Outcome
from ..tracing import spans, switch
from ..tracing.spans import EndedAttempt, Named
from ..tracing.subject import about_reference

if TYPE_CHECKING:
    from ..messaging.messages import Reply  # which a supervisor does not load
    from .change import Change

logger = logging.getLogger(__name__)
Reported = TypeVar("Reported")


def attempts(ended: "Iterable[tuple[Reply | None, StepView, Change]]") -> None:
    """Add attempts that have ended to their tasks' traces; without a reply they have expired."""
    if switch.ON:
        _after_commit(spans.attempted, [_attempt(*attempt) for attempt in ended])


def _attempt(reply: "Reply | None", step: StepView, change: "Change") -> EndedAttempt:
    return EndedAttempt(
        task=Named(workflow=change.workflow, reference=change.reference),
        step=step.id,
        name=step.name,
        attempt=step.attempt,
        direction=step.direction,
        claimed_at=step.dispatch / 1e6,
        outcome=reply.outcome if reply else Outcome.EXPIRED.value,
        attributes={
            "sas.agent": step.agent,
            "sas.key": step_key(step.task, step.name, step.direction, step.generation),
            **({"sas.worker": reply.by, "sas.tries": reply.tries} if reply else {}),
            **({"sas.code": reply.code[:100]} if reply else {}),
        },
    )


def retried(steps: "Sequence[tuple[Change, StepView]]", events: Sequence[Event]) -> None:
    """Say in the log which steps are retried, and why and when, by the events about that."""
    about = [(*subject, event.reason) for subject, event in zip(steps, events, strict=True)]
    _after_commit(partial(_log, logging.INFO, "%s is retried: %s"), about)


def undoing(change: "Change", part: Collection[str] | None) -> None:
    """Say in the log that the undo of a task, or of a part, begins.

    Its reason may hold what a partner or a person wrote.
    """
    about = about_reference(change.workflow, change.reference)
    what = "%s is undone" if part is None else "a part of %s is undone"
    transaction.on_commit(lambda: logger.info(what, change.workflow, extra=about))


def finished(changes: "Collection[Change]") -> None:
    """Say in the log which steps are given up; add tasks that have ended to their traces."""
    failed = [
        (change, change.steps[failure.step], failure.code)  # a message may hold anything
        for change in changes
        for failure in change.final_failures
    ]
    if failed:
        _after_commit(partial(_log, logging.WARNING, "%s is in error: %s"), failed)
    if switch.ON:
        _after_commit(_end, changes)


def _log(level: int, text: str, about: "tuple[Change, StepView, str]") -> None:
    change, step, why = about
    fields = {"reference": change.reference, "step": step.name, "attempt": step.attempt}
    logger.log(level, text, step.name, why, extra=fields)


def _end(change: "Change") -> None:
    if change.task_states and change.state in FINAL_TASK_STATES:
        task = Named(workflow=change.workflow, reference=change.reference)
        spans.ended(task, change.id, change.state)


def _after_commit(report: Callable[[Reported], None], about: Iterable[Reported]) -> None:
    def tell() -> None:
        for subject in about:
            report(subject)

    transaction.on_commit(tell, robust=True)  # what fails here must not count as a rollback
