"""Submit the tasks of schedules that are due: each due time once.

The submissions and how far a schedule is are written in one transaction, so a housekeeper that dies leaves
both or neither. Two that act at once lock their rows. And if a row has an old position all the same, after a
restore or a change of the clock, the reference decides: there is one task of it.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from .. import conf, registry
from ..applications.submissions import Posting, submit_many
from ..cluster import crash_points
from ..cluster.duty import NOW, Duty, Sweep
from ..database import batches, sql
from ..decisions.schedule import Overlap, Verdict, decide, reference
from ..models import Schedule
from ..models.retention import removal_key
from ..models.schedule import FAIRNESS_KEY
from ..registry import NotRegistered
from ..states import FINAL_TASK_STATES

logger = logging.getLogger(__name__)

ENDED = ", ".join(f"'{state}'" for state in FINAL_TASK_STATES)
NAMED = "m.workflow = s.workflow AND m.reference = s.reference"
# By submission_once, submission_set_aside and task_once. Not as EXISTS: Postgres may hash a whole table.
OPEN = (
    f"(SELECT true FROM orchestration_submission m WHERE {NAMED} AND m.refused_at IS NULL LIMIT 1)"  # noqa: S608 - constants
)
ASIDE = f"(SELECT true FROM orchestration_submission m WHERE {NAMED} AND m.refused_at IS NOT NULL LIMIT 1)"  # noqa: S608 - constants
TASK = f"(SELECT m.state FROM orchestration_task m WHERE {NAMED} LIMIT 1)"  # noqa: S608 - constants
REMOVED = f"""(SELECT true FROM orchestration_removedtask r
    WHERE r.key = {removal_key("s.workflow", "s.reference")} LIMIT 1)"""  # noqa: S608 - constants

# The schedules whose last task has not ended.
GOING = f"""
SELECT s.id FROM unnest(%(ids)s::bigint[], %(workflows)s::text[], %(references)s::text[])
    AS s (id, workflow, reference)
WHERE {OPEN} IS TRUE OR {TASK} NOT IN ({ENDED})
"""  # noqa: S608 - put together from constants

# Which references are taken.
TAKEN = f"""
SELECT s.workflow, s.reference FROM unnest(%(workflows)s::text[], %(references)s::text[])
    AS s (workflow, reference)
WHERE {OPEN} IS TRUE OR {TASK} IS NOT NULL OR {ASIDE} IS TRUE OR {REMOVED} IS TRUE
"""  # noqa: S608 - put together from constants

NOTE = """
UPDATE orchestration_schedule s SET
    due_at = v.due_at, look_at = v.look_at, waiting_due = v.waiting_due,
    last_due = coalesce(v.last_due, s.last_due),
    last_reference = coalesce(v.last_reference, s.last_reference),
    submitted = s.submitted + v.submitted, skipped = s.skipped + v.skipped, missed = s.missed + v.missed,
    skipped_due = coalesce(v.skipped_due, s.skipped_due),
    skipped_behind = CASE WHEN v.skipped_due IS NULL THEN s.skipped_behind ELSE s.last_reference END,
    problem = '', failing_since = NULL, tries = 0
FROM unnest(%(id)s::bigint[], %(due_at)s::timestamptz[], %(look_at)s::timestamptz[],
    %(waiting_due)s::timestamptz[], %(last_due)s::timestamptz[], %(last_reference)s::text[],
    %(submitted)s::int[], %(skipped)s::int[], %(missed)s::int[], %(skipped_due)s::timestamptz[])
    AS v (id, due_at, look_at, waiting_due, last_due, last_reference, submitted, skipped, missed, skipped_due)
WHERE s.id = v.id
"""

FAIL = f"""
UPDATE orchestration_schedule SET problem = %(problem)s, failing_since = coalesce(failing_since, %(now)s),
    tries = least(tries + 1, 32767), look_at = %(now)s + interval '1 second'
        * least({conf.RETRY_WAIT_S} * power(2, least(tries, 30)), {conf.RETRY_WAIT_CAP_S})
WHERE id = %(id)s AND look_at <= %(now)s
"""  # noqa: S608 - constants


@dataclass(frozen=True, kw_only=True)
class Look:
    """A schedule that is due, and what was decided about it."""

    row: Schedule
    verdict: Verdict

    @property
    def postings(self) -> list[Posting]:
        """The tasks to submit."""
        row = self.row
        return [posting(row, reference(row.name, due), due) for due in self.verdict.submitted]

    @property
    def noted(self) -> Mapping[str, Any]:
        """The values that the row gets."""
        verdict, position = self.verdict, self.verdict.position
        last = verdict.submitted[-1] if verdict.submitted else None
        return {
            "id": self.row.id,
            "due_at": position.due,
            "look_at": verdict.look_at,
            "waiting_due": position.waiting,
            "last_due": last,
            "last_reference": reference(self.row.name, last) if last else None,
            "submitted": len(verdict.submitted),
            "skipped": len(verdict.skipped),
            "missed": verdict.missed,
            "skipped_due": verdict.skipped[-1] if verdict.skipped else None,
        }


def posting(row: Schedule, named: str, due: datetime) -> Posting:
    """Return the task of a schedule that is due at a time."""
    return Posting(
        workflow=row.workflow,
        reference=named,
        data=row.input_at(due),
        reply_to=row.reply_to,
        priority=row.priority,
        fairness_key=row.fairness_key or FAIRNESS_KEY,
    )


def submit_due(sweep: Sweep) -> int:
    """Submit what is due; return how many tasks. A schedule that fails does not stop the others."""
    tasks: list[int] = []

    def look(ids: Sequence[int]) -> int:
        rows, count = submit(sweep.now, ids)
        tasks.append(count)
        return rows

    _, failing = batches.all_found(partial(_due, sweep.now), look, sweep.budget)
    for number, error in failing.items():
        logger.warning("schedule %d cannot submit: %s", number, sql.first_line(error))
        sql.run(FAIL, {"id": number, "now": sweep.now, "problem": _in_words(error)})
    return sum(tasks)


def _in_words(error: Exception) -> str:
    """Return why a schedule cannot submit: what is wrong with it, or the error of code."""
    text = sql.first_line(error)
    if isinstance(error, LookupError | ValueError) and text:
        return f"{text[0].upper()}{text[1:].rstrip('.')}."
    return f"{type(error).__name__}: {text}"


def _due(now: datetime, limit: int, excluded: Collection[int]) -> list[int]:
    rows = Schedule.objects.filter(look_at__lte=now).exclude(id__in=excluded)
    return list(rows.order_by("look_at").values_list("id", flat=True)[:limit])


@transaction.atomic
def submit(now: datetime, ids: Sequence[int]) -> tuple[int, int]:
    """Submit what is due of some schedules, and note how far they are.

    Return how many of them were looked at (not what another session has locked), and how many tasks it is.
    """
    rows = list(sql.lock(Schedule.objects.filter(id__in=ids, look_at__lte=now).order_by("id")))
    for row in rows:
        if row.declared and row.name not in registry.schedules:
            raise NotRegistered(f"no code declares the schedule {row.name!r} any more")
    still = going(rows)
    looks = [
        Look(row=row, verdict=decide(row.plan, row.position, now, going=row.id in still))
        for row in rows
    ]
    postings = [posting for look in looks for posting in look.postings]
    _post(postings)
    if noted := [look.noted for look in looks]:
        sql.run(NOTE, {name: [values[name] for values in noted] for name in noted[0]})
    return len(rows), len(postings)


def going(rows: Collection[Schedule]) -> set[int]:
    """Return the schedules whose last task has not ended, of those that do not allow overlap."""
    asked = [row for row in rows if row.overlap != Overlap.ALLOW and row.last_reference]
    values = {
        "ids": [row.id for row in asked],
        "workflows": [row.workflow for row in asked],
        "references": [row.last_reference for row in asked],
    }
    return {number for (number,) in sql.run(GOING, values)} if asked else set()


def _post(postings: Sequence[Posting]) -> None:
    """Post the tasks whose references are free: a due time may come twice, as a clock that went back."""
    if not postings:
        return
    values = {
        "workflows": [posting.workflow for posting in postings],
        "references": [posting.reference for posting in postings],
    }
    taken = set(sql.run(TAKEN, values))
    fresh = [posting for posting in postings if (posting.workflow, posting.reference) not in taken]
    if fresh:
        submit_many(fresh)
        crash_points.reached("schedules.before_commit")
        transaction.on_commit(partial(crash_points.reached, "schedules.after_commit"))


SUBMIT_SCHEDULED = Duty(
    name="submit what is scheduled",
    run=submit_due,
    counted="scheduled",
    # by schedule_due
    due=f"EXISTS (SELECT FROM orchestration_schedule WHERE look_at <= {NOW})",
)
