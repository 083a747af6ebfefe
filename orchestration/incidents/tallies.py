"""Count failures for incidents as tallies, in a fixed number of statements per transaction."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import Count

from ..database import sql
from ..models import Incident
from .fingerprint import VARIOUS, VERSION, Cause

# Distinct messages of one step and code, and distinct codes of one step; concurrent failures may add some.
MAX_CAUSES = 100
MAX_CODES = 100

# In the order of fingerprints, so that two transactions with the same new causes do not deadlock.
OPEN_INCIDENTS = """
WITH made AS (
    INSERT INTO orchestration_incident (fingerprint, version, workflow, step, direction, agent,
        outcome, code, message, sample, title, severity, state)
    SELECT c.fingerprint, %(version)s, c.workflow, c.step, c.direction, c.agent, c.outcome, c.code,
        c.message, c.sample, c.title, 'warning', 'new'
    FROM unnest(%(fingerprint)s::text[], %(workflow)s::text[], %(step)s::text[],
        %(direction)s::text[], %(agent)s::text[], %(outcome)s::text[], %(code)s::text[],
        %(message)s::text[], %(sample)s::text[], %(title)s::text[])
        AS c (fingerprint, workflow, step, direction, agent, outcome, code, message, sample, title)
    ORDER BY c.fingerprint
    ON CONFLICT (fingerprint) DO NOTHING
    RETURNING id, title
)
INSERT INTO orchestration_event (incident_id, kind, actor, reason, detail)
SELECT id, 'cause', %(by)s, '', jsonb_build_object('what', 'opened', 'title', title) FROM made
"""

# A failure refers to its incident and may raise its alert; both need row locks. The engine itself holds
# an alert's lock only briefly: a longer one is another session's.
LOCKED = """
WITH wanted AS MATERIALIZED (
    SELECT id, fingerprint FROM orchestration_incident WHERE fingerprint = ANY(%(causes)s)
), free AS MATERIALIZED (
    SELECT id FROM orchestration_incident WHERE fingerprint = ANY(%(causes)s)
    ORDER BY id FOR KEY SHARE SKIP LOCKED
), free_alerts AS MATERIALIZED (
    SELECT id FROM orchestration_alert
    WHERE closed_at IS NULL AND incident_id IN (SELECT id FROM wanted)
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
)
SELECT w.fingerprint FROM wanted w
WHERE w.id NOT IN (SELECT id FROM free) OR EXISTS (
    SELECT FROM orchestration_alert a WHERE a.incident_id = w.id AND a.closed_at IS NULL
        AND a.id NOT IN (SELECT id FROM free_alerts))
"""

# A step is hit once (a row without xmax); its row counts the failures. The writer has locked the task,
# so this never waits.
COUNT_HITS = """
WITH hit AS (
    INSERT INTO orchestration_incidenthit (incident_id, step_id, failures)
    SELECT incident, step, 1
    FROM unnest(%(incidents)s::bigint[], %(steps)s::bigint[]) AS f (incident, step)
    ORDER BY incident, step
    ON CONFLICT (incident_id, step_id) DO UPDATE SET
        failures = orchestration_incidenthit.failures + 1, last_at = clock_timestamp()
    RETURNING incident_id, xmax = 0 AS fresh
)
INSERT INTO orchestration_incidenttally (incident_id, failures, tasks)
SELECT incident_id, count(*), count(*) FILTER (WHERE fresh) FROM hit GROUP BY incident_id
"""

ADD_OPEN = """
INSERT INTO orchestration_incidenttally (incident_id, open_tasks, again, currency, value)
SELECT s.incident_id, count(*), count(*) FILTER (WHERE h.retried_at IS NOT NULL), t.currency,
    sum(t.value)
FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
LEFT JOIN orchestration_incidenthit h ON h.incident_id = s.incident_id AND h.step_id = s.id
WHERE s.id = ANY(%(steps)s) AND s.process_state = 'error' AND s.incident_id IS NOT NULL
GROUP BY s.incident_id, t.currency
"""

REMOVE_OPEN = """
WITH over AS (
    SELECT s.id, s.incident_id, t.currency, t.value
    FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
    WHERE s.id = ANY(%(steps)s) AND s.process_state = 'error' AND s.incident_id IS NOT NULL
), retried AS (
    UPDATE orchestration_incidenthit h SET retried_at = clock_timestamp() FROM over
    WHERE %(retried)s AND h.incident_id = over.incident_id AND h.step_id = over.id
)
INSERT INTO orchestration_incidenttally (incident_id, open_tasks, retried, actor, currency, value)
SELECT incident_id, -count(*), CASE WHEN %(retried)s THEN count(*) ELSE 0 END, %(by)s, currency,
    -sum(value)
FROM over GROUP BY incident_id, currency
"""

ADD_VALUE = """
INSERT INTO orchestration_incidenttally (incident_id, currency, value)
SELECT s.incident_id, t.currency, %(sign)s * sum(t.value)
FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.id = %(task)s AND s.process_state = 'error' AND s.incident_id IS NOT NULL
GROUP BY s.incident_id, t.currency
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepFailure:
    """A failed attempt of a step, or one that could not be made: its cause and message."""

    step: int
    cause: Cause
    message: str


def lock(causes: Iterable[Cause]) -> set[str]:
    """Lock the incidents and open alerts of these causes; return the fingerprints that are locked.

    Another session holds the incident or the open alert of those. Never waits.
    """
    names = {
        cause.fingerprint: {stand_in.fingerprint for stand_in in (cause, *_stand_ins(cause))}
        for cause in causes
    }
    if not names:
        return set()
    rows = sql.run(LOCKED, {"causes": list(set().union(*names.values()))})
    locked = {fingerprint for (fingerprint,) in rows}
    return {name for name, either in names.items() if either & locked}


def count_failures(failures: Sequence[StepFailure], *, by: str) -> list[int]:
    """Count each failure for the incident of its cause; return one incident id per failure.

    The caller has locked the steps' tasks, and names each step at most once.
    """
    if not failures:
        return []
    known = _identify({failure.cause.fingerprint: failure for failure in failures}, by)
    incidents = [known[failure.cause.fingerprint] for failure in failures]
    sql.run(COUNT_HITS, {"incidents": incidents, "steps": [failure.step for failure in failures]})
    return incidents


@contextmanager
def revalue(task: UUID) -> Iterator[None]:
    """Update the value at risk by the steps in error of a locked task whose value changes within."""
    sql.run(ADD_VALUE, {"task": task, "sign": -1})
    yield
    sql.run(ADD_VALUE, {"task": task, "sign": 1})


def add_open_failures(steps: Collection[int]) -> None:
    """Count steps that are in error now; call it after their state and incident were written."""
    if steps:
        sql.run(ADD_OPEN, {"steps": list(steps)})


def remove_open_failures(steps: Collection[int], *, retried_by: str = "") -> None:
    """Count off those of `steps` that are in error; call it before their new state is written.

    `retried_by` is the person who resubmits them, if one does.
    """
    if steps:
        row = {"steps": list(steps), "retried": bool(retried_by), "by": retried_by}
        sql.run(REMOVE_OPEN, row)


def _identify(causes: Mapping[str, StepFailure], by: str) -> dict[str, int]:
    """Return the incidents of causes by fingerprint; open the missing ones.

    A service that words each failure differently, or gives each a code of its own, would open an incident
    per failure. Past `MAX_CAUSES` its further messages share one incident, and past `MAX_CODES` its further
    codes.
    """
    known = _known(causes)
    missing = {name: failure for name, failure in causes.items() if name not in known}
    if missing:
        crowd = _crowd({failure.cause.of_step for failure in missing.values()})
        recorded = {name: _recorded_as(failure.cause, crowd) for name, failure in missing.items()}
        _open({recorded[name].fingerprint: (recorded[name], missing[name]) for name in missing}, by)
        # another transaction may have been first: a new statement sees its rows
        opened = _known([cause.fingerprint for cause in recorded.values()])
        known |= {name: opened[cause.fingerprint] for name, cause in recorded.items()}
    return known


def _stand_ins(cause: Cause) -> tuple[Cause, Cause]:
    """The causes that stand for all further messages of its code, and for all further codes of its step."""
    return replace(cause, message=VARIOUS), replace(cause, message=VARIOUS, code=VARIOUS)


def _recorded_as(cause: Cause, crowd: Mapping[tuple[str, ...], Mapping[str, int]]) -> Cause:
    """Return a new cause, or its stand-in if its code, or its step, has too many causes already."""
    codes = crowd.get(cause.of_step, {})
    of_code, of_step = _stand_ins(cause)
    if cause.code in codes:
        return of_code if codes[cause.code] >= MAX_CAUSES else cause
    return of_step if len(codes) >= MAX_CODES else cause


def _known(causes: Collection[str]) -> dict[str, int]:
    rows = Incident.objects.filter(fingerprint__in=list(causes))
    return dict(rows.values_list("fingerprint", "id"))


def _crowd(steps: Collection[tuple[str, ...]]) -> Mapping[tuple[str, ...], Mapping[str, int]]:
    """Return how many causes there are of each step, by their codes."""
    rows = Incident.objects.filter(
        workflow__in={workflow for workflow, *_ in steps}, step__in={step for _, step, *_ in steps}
    )
    counts: dict[tuple[str, ...], dict[str, int]] = defaultdict(dict)
    kinds = rows.values_list("workflow", "step", "direction", "agent", "outcome", "code")
    for *of_step, code, count in kinds.annotate(count=Count("id")).order_by():
        counts[tuple(of_step)][code] = count
    return counts


def _open(causes: Mapping[str, tuple[Cause, StepFailure]], by: str) -> None:
    names = (
        *("fingerprint", "workflow", "step", "direction", "agent", "outcome", "code"),
        *("message", "title"),
    )
    columns = {name: [getattr(cause, name) for cause, _ in causes.values()] for name in names}
    sql.run(
        OPEN_INCIDENTS,
        {
            **columns,
            "sample": [failure.message for _, failure in causes.values()],
            "version": VERSION,
            "by": by,
        },
    )
