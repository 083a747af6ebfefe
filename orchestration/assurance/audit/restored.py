"""What the services did after the moment to which the database was restored, by their ledgers.

Fill the audit's tables first (`snapshot.prepare`, `snapshot.read_ledgers`). Of interest are effects under
the engine's own keys whose steps or tasks do not know of them.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import Any
from uuid import UUID

from ... import registry
from ...alerting.alerts import LATE_EFFECT
from ...database import sql
from ...models.fields import child_id
from ...payloads import references
from ...payloads.references import BELOW

# A task's id begins with the time at which it was made; it was committed this much later at most.
COMMITTED_WITHIN = timedelta(minutes=1)
OPEN = "('waiting', 'pending', 'processing', 'error')"

FORGOTTEN = f"""
SELECT s.id, max(greatest(e.generation, s.generation)), s.task_id
FROM audit_ledger e
JOIN orchestration_step s ON s.task_id = e.task AND s.name = e.step AND s.direction = e.direction
WHERE e.kind <> 'none' AND e.generation >= s.generation AND s.process_state IN {OPEN}
GROUP BY s.id HAVING NOT s.in_doubt OR max(e.generation) > s.generation
ORDER BY s.id
"""  # noqa: S608 - put together from constants
UNLISTED = f"""
SELECT s.id, s.generation, s.task_id FROM orchestration_step s
WHERE s.agent = ANY(%(agents)s) AND s.process_state IN {OPEN} AND NOT s.in_doubt
ORDER BY s.id
"""  # noqa: S608 - put together from constants
# An undo that the service was asked for, of a task that is not being undone here.
UNDONE = """
SELECT DISTINCT t.id FROM audit_ledger e JOIN orchestration_task t ON t.id = e.task
WHERE e.direction = 'undo' AND t.undo_at IS NULL
ORDER BY t.id
"""
# A child has the time of its parent in its id, which may be known here.
LOST = f"""
SELECT e.task, e.reference, e.agent, e.step, e.direction, e.kind, e.generation, e.result
FROM audit_ledger e
WHERE (e.task >= %(first)s OR EXISTS (SELECT FROM orchestration_task t
        WHERE t.reference = regexp_replace(e.reference, '({BELOW})+$', '')
            AND t.reference <> e.reference))
    AND (e.kind <> 'none' OR e.direction = 'undo')
    AND NOT EXISTS (SELECT FROM orchestration_task t WHERE t.id = e.task)
    AND NOT EXISTS (SELECT FROM orchestration_alert a
        WHERE a.fingerprint = '{LATE_EFFECT}' || e.task || '/lost')
"""  # noqa: S608 - put together from constants
ROOTS = """
SELECT t.reference, t.id, t.undo_at IS NOT NULL
    OR EXISTS (SELECT FROM audit_ledger e WHERE e.task = t.id AND e.direction = 'undo')
FROM orchestration_task t WHERE t.reference = ANY(%(references)s)
"""
PENDING = """
SELECT workflow, reference FROM orchestration_submission
WHERE refused_at IS NULL AND reference = ANY(%(references)s)
"""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What a service did for a step of a task that is lost here."""

    agent: str
    step: str
    generation: int
    result: Mapping[str, Any] | None


@dataclass(kw_only=True)
class LostTask:
    """A task that is unknown here, with the effects of it that stand.

    `workflow` is that of the submission it was made of, if that is here again. `root` is the task at the top
    of those that it is a child of, if that is here or will be. `is_child`: it is made again for that, under
    the same id. `repeatable`: its first calls get their answers then.
    """

    id: UUID
    reference: str = ""
    workflow: str = ""
    effects: list[Effect] = field(default_factory=list)
    root: UUID | None = None
    is_child: bool = False
    repeatable: bool = True


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Steps that may have been done (id → generation of the key); tasks undone meanwhile, and lost.

    `tasks` are those of the steps. `unlisted` are agents without a ledger: each of their steps that is
    open may have been done, and what they did for lost tasks is unknown.
    """

    steps: Mapping[int, int]
    tasks: Collection[UUID]
    undone: Collection[UUID]
    lost: Collection[LostTask]
    unlisted: Collection[str]

    @property
    def adoptable(self) -> list[LostTask]:
        """The lost tasks whose submissions are here again."""
        return [task for task in self.lost if task.workflow]

    @property
    def gone(self) -> list[LostTask]:
        """The lost tasks without a trace here."""
        return [task for task in self.lost if not (task.workflow or task.is_child)]

    @property
    def children(self) -> list[LostTask]:
        """The lost tasks that steps of known tasks make again."""
        return [task for task in self.lost if task.is_child]

    def __bool__(self) -> bool:
        """Return whether anything is to be done."""
        repeated = sum(task.repeatable for task in self.children)
        return bool(self.steps or self.undone or len(self.lost) > repeated)


def _matters(lost: LostTask) -> bool:
    """Return whether a lost task did more than write letters for another, say."""
    declared = [
        ((step.agent, step.name), workflow.background and bool(step.irreversible))
        for workflow in registry.workflows.values()
        for step in workflow.steps
    ]
    letters = {name for name, is_letter in declared if is_letter}
    letters -= {name for name, is_letter in declared if not is_letter}
    return not letters.issuperset((effect.agent, effect.step) for effect in lost.effects)


def _may_be_of(workflow: str, lost: LostTask) -> bool:
    """Return whether the workflow has the steps that a lost task had."""
    declared = registry.workflows.get(workflow)
    steps = {(step.agent, step.name) for step in declared.steps} if declared else set()
    return steps.issuperset((effect.agent, effect.step) for effect in lost.effects)


def find(restored_to: datetime, listed: Collection[str], agents: Collection[str]) -> Findings:
    """Compare the tables with the ledgers of the agents `listed`, and with none of the other `agents`."""
    unlisted = sorted(set(agents) - set(listed))
    steps = sql.run(FORGOTTEN, {}) + sql.run(UNLISTED, {"agents": unlisted})
    first = int((restored_to - COMMITTED_WITHIN).timestamp() * 1000) << 80
    return Findings(
        steps={step: generation for step, generation, _ in steps},
        tasks={task for *_, task in steps},
        undone=[task for (task,) in sql.run(UNDONE, {})],
        lost=_lost(UUID(int=first)),
        unlisted=unlisted,
    )


def _lost(first: UUID) -> list[LostTask]:
    """Return the lost tasks with ids from `first` on, each with the effects that were not undone."""
    lost = _read(first)
    by_reference = {task.reference: task for task in lost.values() if task.reference}
    for workflow, reference in sql.run(PENDING, {"references": list(by_reference)}):
        if _may_be_of(workflow, by_reference[reference]):
            by_reference[reference].workflow = workflow
    _find_roots(lost.values())
    entries = [
        task for task in lost.values() if task.root or task.id >= first
    ]  # others were removed
    mattering = [entry for entry in entries if not entry.effects or _matters(entry)]
    return sorted(mattering, key=lambda task: task.id)


def _read(first: UUID) -> dict[UUID, LostTask]:
    lost: dict[UUID, LostTask] = {}
    done: dict[UUID, dict[str, Effect]] = defaultdict(dict)
    undone: set[tuple[UUID, str]] = set()
    for task, reference, agent, step, direction, kind, generation, result in sql.run(
        LOST, {"first": first}
    ):
        entry = lost.setdefault(task, LostTask(id=task))
        entry.reference = entry.reference or reference or ""
        entry.repeatable &= generation == 1 and direction == "do"
        if direction == "undo":
            undone.add((task, step))
        elif kind != "none":
            known = None if result is None else json.loads(result)
            done[task][step] = Effect(agent=agent, step=step, generation=generation, result=known)
    for task, effects in done.items():
        lost[task].effects = [
            effect for name, effect in effects.items() if (task, name) not in undone
        ]
    return lost


def _find_roots(lost: Collection[LostTask]) -> None:
    """Find the children of tasks that are known here, or become known by their submissions."""
    above = {entry.id: references.above(entry.reference) for entry in lost}
    known: dict[str, dict[UUID, bool]] = defaultdict(dict)
    for reference, task, undoing in sql.run(
        ROOTS, {"references": sorted(set(chain(*above.values())))}
    ):
        known[reference][task] = undoing
    for entry in lost:
        if entry.workflow:
            known[entry.reference][entry.id] = False
    for entry in lost:
        for at, reference in enumerate(above[entry.id]):
            between = above[entry.id][at + 1 :]
            entry.root = entry.root or _root_of(entry, between, known[reference])
            entry.is_child = entry.is_child or (
                entry.root in known[reference] and not known[reference][entry.root]
            )


def _root_of(entry: LostTask, between: Sequence[str], roots: Collection[UUID]) -> UUID | None:
    """Return which of the roots a task is a child of a child … of, with these references between."""
    for root in roots:
        task = root
        for reference in (*between, entry.reference):
            task = child_id(task, reference)
        if task == entry.id:
            return root
    return None
