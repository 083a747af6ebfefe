"""Make failed steps pending again, as was decided: processing → pending (P10, P11, P26)."""

from collections.abc import Sequence

from ..database import sql
from ..decisions.recovery import Retry, Undo
from ..models import Event
from ..models.history import EventKind
from ..states import StepState
from . import reports
from .failures import Failed
from .locked_task import note
from .undo_requests import WAIT, request
from .versions import attempts, require

RETRY = """
UPDATE orchestration_step s SET
    process_state = 'pending', locked_by = NULL, complete_by = NULL,
    failure_count = r.failure_count, extended_waits = r.extended_waits, outcome = r.outcome,
    error_code = r.code, error_message = r.message, pending_since = clock_timestamp(),
    in_doubt = r.in_doubt AND NOT r.new_key, probing_outcome = s.probing_outcome OR r.probing_outcome,
    generation = s.generation + r.new_key::int,
    keyed_at = CASE WHEN r.new_key THEN NULL ELSE s.keyed_at END, isolated = r.isolated,
    run_after = clock_timestamp() + r.wait * interval '1 second', retry_after = NULL,
    failed_at = CASE WHEN r.outcome <> 'absent' THEN clock_timestamp() END, own_trouble = r.own_trouble,
    incident_id = coalesce(r.incident, s.incident_id)
FROM unnest(%(ids)s::bigint[], %(attempts)s::int[], %(generations)s::int[], %(counts)s::int[],
    %(extended_waits)s::int[], %(waits)s::float8[], %(outcomes)s::text[], %(codes)s::text[],
    %(messages)s::text[], %(in_doubt)s::bool[], %(new_key)s::bool[],
    %(probing_outcome)s::bool[], %(isolated)s::bool[], %(incidents)s::bigint[], %(own_trouble)s::bool[])
    AS r (id, attempt, generation, failure_count, extended_waits, wait, outcome, code, message,
        in_doubt, new_key, probing_outcome, isolated, incident, own_trouble)
WHERE s.id = r.id AND s.process_state = 'processing'
    AND (s.attempt, s.generation) = (r.attempt, r.generation)
RETURNING s.id
"""


def retry(steps: Sequence[tuple[Failed, Retry]], *, by: str) -> None:
    """Make failed steps pending again, as decided."""
    _make_pending(steps)
    events = [_retried(step, again, by) for step, again in steps]
    Event.objects.bulk_create(events)
    reports.retried([(step.change, step.view) for step, _ in steps], events)


def ask_to_undo(steps: Sequence[tuple[Failed, Undo]], *, by: str) -> None:
    """Ask that the tasks of failed steps be undone; the steps wait until a scheduler begins that."""
    _make_pending(
        [(step, Retry(failure_count=undo.failure_count, wait=WAIT)) for step, undo in steps]
    )
    request([(step.change, step.view, _why(step, undo)) for step, undo in steps], by=by)


def _why(step: Failed, undo: Undo) -> str:
    what = step.failure.code or step.failure.outcome
    return f"{step.view.name} failed {undo.failure_count} times ({what})"


def _make_pending(steps: Sequence[tuple[Failed, Retry]]) -> None:
    if not steps:
        return
    written = sql.run(
        RETRY,
        {
            **attempts(step.view for step, _ in steps),
            "counts": [again.failure_count for _, again in steps],
            "extended_waits": [again.extended_waits for _, again in steps],
            "waits": [again.wait for _, again in steps],
            "outcomes": [step.view.outcome for step, _ in steps],
            "codes": [step.failure.code for step, _ in steps],
            "messages": [step.message for step, _ in steps],
            "in_doubt": [step.view.in_doubt for step, _ in steps],
            "new_key": [again.new_key for _, again in steps],
            "probing_outcome": [
                step.change.undoing and step.failure.direction == "do" for step, _ in steps
            ],
            "isolated": [again.isolated for _, again in steps],
            "incidents": [step.incident for step, _ in steps],
            "own_trouble": [step.view.own_trouble for step, _ in steps],
        },
    )
    require(written, steps)
    for step, again in steps:
        generation = step.view.generation + again.new_key
        step.change.moved(step.view.altered(state=StepState.PENDING, generation=generation))


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
    return note(step.change, step.view, kind, by=by, reason=reason)
