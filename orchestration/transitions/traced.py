"""The attempts of steps in their tasks' traces."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..decisions.progress import StepView
from ..payloads.keys import step_key
from ..states import Outcome
from ..tracing import spans
from ..tracing.spans import EndedAttempt, Named
from .locked_task import Change

if TYPE_CHECKING:
    from ..messaging.messages import Reply  # which a supervisor does not load


def ended_attempt(change: Change, step: StepView, reply: "Reply | None" = None) -> EndedAttempt:
    """Return an attempt at a step whose task is locked, as it is now: later it may be at another.

    Without a reply it has expired.
    """
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


def trace(ended: Iterable[EndedAttempt]) -> None:
    """Add attempts to their tasks' traces."""
    for one in ended:
        spans.attempted(one)
