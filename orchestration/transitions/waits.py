"""Write what steps wait for, and end it: one row for each, which goes as that ends.

A step awaits a result; or, before it begins, its time.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ..database import clock, prepared, sql
from ..decisions.progress import StepView
from ..decisions.readiness import value_of
from ..payloads.moments import seconds_or_moment
from ..payloads.placeholders import Unresolved
from ..states import Outcome

SHORTEST_S = 1e-6  # of a wait for a result
DEFAULT_S = 86_400.0  # seconds that an accepted request has, where its workflow does not say

# What the clock shows beyond what this process takes it to be: it may have been set since it was measured. A
# duration counts from now on, by the clock as it is.
AHEAD = "(clock_timestamp() - %(now)s::timestamptz)"

# A row is there before, if the result was; that stays, for what follows to see.
OPEN = f"""
INSERT INTO orchestration_wait (step_id, task_id, agent, external_id, person, signal, awaited_at,
    ends_by, fixed, due_at, look, look_at, looks, asked_last, reminded)
SELECT w.step, w.task, w.agent, w.external_id, w.person, w.signal, clock_timestamp(),
    CASE WHEN w.fixed THEN w.ends_by ELSE w.ends_by + {AHEAD} END, w.fixed,
    CASE WHEN w.fixed AND w.due_at = w.ends_by THEN w.due_at ELSE w.due_at + {AHEAD} END, w.look,
    clock_timestamp() + nullif(w.look, 0) * interval '1 second', 0, false, 0
FROM unnest(%(steps)s::bigint[], %(tasks)s::uuid[], %(agents)s::text[], %(external_ids)s::text[],
    %(persons)s::text[], %(signals)s::text[], %(ends_by)s::timestamptz[], %(fixed)s::bool[],
    %(due_at)s::timestamptz[], %(looks)s::float8[])
    AS w (step, task, agent, external_id, person, signal, ends_by, fixed, due_at, look)
ON CONFLICT (step_id) DO UPDATE SET awaited_at = excluded.awaited_at, ends_by = excluded.ends_by,
    fixed = excluded.fixed, due_at = excluded.due_at, look = excluded.look, look_at = excluded.look_at,
    looks = 0, external_id = excluded.external_id, person = excluded.person, signal = excluded.signal,
    asked_last = false, reminded = 0
RETURNING report IS NOT NULL
"""  # noqa: S608 - a constant of our own
KEEP = """
INSERT INTO orchestration_wait (step_id, task_id, agent, external_id, person, signal, looks, asked_last,
    reminded, report)
SELECT step, task, agent, '', '', '', 0, false, 0, report
FROM unnest(%(steps)s::bigint[], %(tasks)s::uuid[], %(agents)s::text[], %(reports)s::jsonb[])
    AS r (step, task, agent, report)
ON CONFLICT (step_id) DO UPDATE SET report = coalesce(orchestration_wait.report, excluded.report)
"""
CLOSE = "DELETE FROM orchestration_wait WHERE step_id = ANY(%(steps)s::bigint[])"

# Until a step's time has come; what was reported of it before stays.
HOLD_BACK = f"""
INSERT INTO orchestration_wait (step_id, task_id, agent, external_id, person, signal, fixed, due_at, looks,
    asked_last, reminded)
SELECT w.step, w.task, w.agent, '', '', '', w.fixed,
    CASE WHEN w.fixed THEN w.due_at ELSE w.due_at + {AHEAD} END, 0, false, 0
FROM unnest(%(steps)s::bigint[], %(tasks)s::uuid[], %(agents)s::text[], %(due_at)s::timestamptz[],
    %(fixed)s::bool[]) AS w (step, task, agent, due_at, fixed)
ON CONFLICT (step_id) DO UPDATE SET due_at = excluded.due_at, fixed = excluded.fixed
"""  # noqa: S608 - a constant of our own
BEGIN = """
WITH begun AS (
    UPDATE orchestration_wait SET due_at = NULL, fixed = false
    WHERE step_id = ANY(%(steps)s::bigint[]) AND report IS NOT NULL)
DELETE FROM orchestration_wait WHERE step_id = ANY(%(steps)s::bigint[]) AND report IS NULL
"""
HELD_BACK = """
SELECT step_id FROM orchestration_wait WHERE step_id = ANY(%(steps)s::bigint[]) AND due_at IS NOT NULL
"""


@dataclass(frozen=True, kw_only=True)
class Report:
    """How a step ends that awaits its result, as it is reported: done, or rejected with a code.

    `of` is what the service calls what it accepted, if that is known: a report of an earlier request, under
    another key, is not of this step.
    """

    id: str
    actor: str
    of: str = ""
    outcome: str = Outcome.DONE.value
    result: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""
    message: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError or TypeError for what ends no step: it may have been posted by SQL."""
        if self.outcome not in {Outcome.DONE, Outcome.REJECTED}:
            raise ValueError(f"outcome is {self.outcome!r}, not done or rejected")
        if not isinstance(self.result, Mapping):
            raise TypeError(f"result is {self.result!r}, not a mapping")
        if not all(isinstance(text, str) for text in (self.of, self.code, self.message)):
            raise TypeError("of, code and message are texts")


class Until(NamedTuple):
    """By when a result has to be there; `fixed` by the calendar, or after a duration."""

    at: datetime
    fixed: bool = False

    @classmethod
    def after(cls, seconds: float) -> "Until":
        """Return the end of a wait that begins now."""
        return cls(clock.utc_now() + timedelta(seconds=seconds))


class NewTime(NamedTuple):
    """The time for which a step is to wait before it begins."""

    step: StepView
    until: "Until"

    @property
    def seconds(self) -> float:
        """Return for how long it waits, from now on."""
        return (self.until.at - clock.utc_now()).total_seconds()


@dataclass(frozen=True, kw_only=True)
class NewWait:
    """What a step is to await; what its service accepted has an id of its own, and may be asked about."""

    step: StepView
    until: "Until"
    external_id: str = ""
    look: float | None = None

    @property
    def due_at(self) -> datetime | None:
        """Return when it is due first: to remind its application, or at its end."""
        flow = self.step.flow
        return next_due(self.until.at, clock.utc_now(), flow.remind if flow else (), 0)


def next_due(
    ends_by: datetime | None, since: datetime | None, remind: Sequence[float], reminded: int
) -> datetime | None:
    """Return when a wait is due next: at its next reminder, counted from `since`, or at its end."""
    if ends_by is None or since is None or reminded >= len(remind):
        return ends_by
    return min(ends_by, since + timedelta(seconds=remind[reminded]))


def ends_by(step: StepView, steps: Collection[StepView], data: Mapping[str, Any]) -> Until:
    """Return by when the result of a step has to be there; raise `Unresolved` if that is not known."""
    within = step.flow.ends_within if step.flow else None
    value = DEFAULT_S if within is None else value_of(within, steps, data)
    return _until(value, "the end of its wait", least=SHORTEST_S)


def begins_at(step: StepView, steps: Collection[StepView], data: Mapping[str, Any]) -> Until | None:
    """Return until when a step has to wait for its time, or None if that has come.

    Raises `Unresolved` if it is not known.
    """
    value = value_of(step.flow.not_before if step.flow else None, steps, data)
    until = None if value is None else _until(value, "its not_before")
    return until if until and until.at > clock.utc_now() else None


def _until(value: Any, what: str, *, least: float = 0.0) -> Until:
    """Return until when a wait lasts that begins now; raise `Unresolved` if that is not known."""
    try:
        named = seconds_or_moment(value, least=least)
    except ValueError as error:
        raise Unresolved(f"{what} {error}") from None
    return Until(named, fixed=True) if isinstance(named, datetime) else Until.after(named)


def held_back(steps: Collection[int]) -> set[int]:
    """Return which of some steps wait for their time."""
    return {step for (step,) in prepared.run(HELD_BACK, {"steps": list(steps)})}


def write_times(timed: Sequence[NewTime], begun: Collection[int]) -> None:
    """Write for which time steps of locked tasks wait from now on, and which wait no longer."""
    if timed:
        values = {
            "steps": [wait.step.id for wait in timed],
            "tasks": [str(wait.step.task) for wait in timed],
            "agents": [wait.step.agent for wait in timed],
            "due_at": [wait.until.at for wait in timed],
            "fixed": [wait.until.fixed for wait in timed],
            "now": clock.utc_now(),
        }
        prepared.run(HOLD_BACK, values)
    if begun:
        prepared.run(BEGIN, {"steps": list(begun)})


def keep(reports: Sequence[tuple[StepView, Report]]) -> None:
    """Keep reports until their steps await them: the first of several counts."""
    if reports:
        steps = [step for step, _ in reports]
        values = {
            "steps": [step.id for step in steps],
            "tasks": [str(step.task) for step in steps],
            "agents": [step.agent for step in steps],
            "reports": sql.as_json([asdict(report) for _, report in reports]),
        }
        sql.run(KEEP, values)


def write(opened: Sequence[NewWait], closed: Collection[int]) -> bool:
    """Write what steps of locked tasks await from now on, and what they await no longer.

    Returns whether the result of any was reported before.
    """
    reported: list[tuple[bool]] = []
    if opened:
        flows = [wait.step.flow for wait in opened]
        reported = prepared.run(
            OPEN,
            {
                "steps": [wait.step.id for wait in opened],
                "tasks": [str(wait.step.task) for wait in opened],
                "agents": [wait.step.agent for wait in opened],
                "external_ids": [wait.external_id for wait in opened],
                "persons": [flow.person if flow else "" for flow in flows],
                "signals": [flow.signal if flow else "" for flow in flows],
                "ends_by": [wait.until.at for wait in opened],
                "fixed": [wait.until.fixed for wait in opened],
                "due_at": [wait.due_at for wait in opened],
                "looks": [wait.look for wait in opened],
                "now": clock.utc_now(),
            },
        )
    if closed:
        prepared.run(CLOSE, {"steps": list(closed)})
    return any(was for (was,) in reported)
