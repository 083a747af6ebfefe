"""Have rejections that a resubmit waits for retried later: processing → pending (P25)."""

from collections.abc import Sequence

from ..database import sql
from ..decisions.progress import StepView
from ..messaging.messages import Reply
from ..models import Event
from ..models.history import EventKind
from ..states import StepState
from .locked_task import Change, note
from .versions import AS_DECIDED, attempts

# Rejections to wait for: retried later, with jitter, under a new key.
WAITED_FOR = f"""
UPDATE orchestration_step s SET process_state = 'pending', complete_by = NULL,
    generation = s.generation + 1, keyed_at = NULL, pending_since = clock_timestamp(),
    failure_count = 0, extended_waits = 0, isolated = false, failed_at = NULL, own_trouble = false,
    run_after = clock_timestamp()
        + (patience->>'wait')::float8 * (1 + random() / 10) * interval '1 second'
{AS_DECIDED} AND s.process_state = 'processing' AND NOT in_doubt
    AND patience->>'code' = error_code AND (patience->>'until')::timestamptz > (SELECT clock_timestamp())
RETURNING s.id, s.generation, patience->>'until'
"""  # noqa: S608 - a constant of our own

Rejected = tuple[Reply, StepView, Change]


def wait(rejected: Sequence[Rejected], *, by: str) -> list[Rejected]:
    """Set rejected steps with patience to pending; return the others: processing → pending."""
    rows = sql.run(WAITED_FOR, attempts(step for _, step, _ in rejected)) if rejected else ()
    waiting = {step: how for step, *how in rows}
    events = []
    for reply, step, change in rejected:
        if step.id in waiting:
            generation, until = waiting[step.id]
            change.moved(step.altered(state=StepState.PENDING, generation=generation))
            reason = f"{reply.code}: retried until {until}, each time with a new key"
            events.append(note(change, step, EventKind.WAITS, by=by, reason=reason))
    Event.objects.bulk_create(events)
    return [one for one in rejected if one[1].id not in waiting]
