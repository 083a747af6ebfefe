"""Which steps of processed tasks must have been skipped, by what the services did and refused."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from orchestration import registry
from orchestration.database import sql

from .declared import data_of
from .services import LEDGER

STEPS = """
SELECT t.id::text, t.reference, t.workflow, s.name, s.process_state, s.attempt, s.done_by,
    EXISTS (SELECT FROM orchestration_event e
        WHERE e.task_id = t.id AND e.kind = 'undo' AND e.detail->'steps' ? s.name)
FROM orchestration_task t JOIN orchestration_step s ON s.task_id = t.id
WHERE t.state = 'processed' AND s.direction = 'do' ORDER BY t.id, s.id
"""


@dataclass(frozen=True, kw_only=True)
class Ends:
    """What was done for a task, and what was refused and not done; by the names of its steps."""

    data: Mapping[str, Any]
    done: Set[str]
    refused: Mapping[str, str]


def problems() -> Iterator[str]:
    """Yield the steps that are skipped and should not be, and the reverse."""
    tasks: dict[tuple[str, str, str], dict[str, tuple[str, int, str, bool]]] = {}
    for task, reference, workflow, name, *how in sql.run(STEPS, {}):
        tasks.setdefault((task, reference, workflow), {})[name] = (how[0], how[1], how[2], how[3])
    for (task, reference, workflow), rows in tasks.items():
        ends = _ends(task, reference, {name for name, (_, _, by, _) in rows.items() if by})
        for step in registry.workflows[workflow].steps:
            state, attempt, _, undone = rows[step.name]
            if step.workflow or undone:
                continue  # done by its children, or undone alone
            needed = _holds(step.when, ends)
            passed = step.refused.get(ends.refused.get(step.name, ""), step.refused.get("*"))
            if not needed:
                right = (state, attempt) == ("skipped", 0)
            elif state == "skipped":
                right = attempt > 0 and step.name in ends.refused and passed == "pass"
            else:
                right = state == "processed" and step.name in ends.done
            if not right:
                yield f"{'needed' if needed else 'not needed'}, and {state}: {step.name} of {reference}"


def _ends(task: str, reference: str, by_hand: set[str]) -> Ends:
    """Return what was done of a task: by services, by hand, or by computing it."""
    data = data_of(reference)
    done = _names(task, LEDGER.effects) | by_hand
    away = _names(task, [*LEDGER.refusals, *LEDGER.turned_away]) - done
    refused = dict.fromkeys(away, "refused")
    done |= {"sum"} if data["heavy"] else {"sum", "weigh"}
    refused |= {"weigh": "too_heavy"} if data["heavy"] else {}
    return Ends(data=data, done=done, refused=refused)


def _names(task: str, keys: Iterable[str]) -> set[str]:
    parts = (key.split(":") for key in keys)
    return {name for of, name, direction, _ in parts if (of, direction) == (task, "do")}


def _holds(when: Any, ends: Ends) -> bool:
    """Return whether a declared condition held."""
    if when is True or when is None:
        return bool(when)
    ((what, content),) = when.items()
    match what:
        case "$not":
            return not _holds(content, ends)
        case "$done":
            return content[0] in ends.done
        case "$passed":
            name, *codes = content
            return name in ends.refused and (not codes or ends.refused[name] in codes)
        case "$first":
            return next(_holds(part, ends) for part in content if _is_there(part, ends))
    return bool(ends.data[content[1]])


def _is_there(when: Any, ends: Ends) -> bool:
    """Return whether a part of a condition has a value."""
    if not isinstance(when, Mapping) or when.keys() != {"$from"}:
        return True
    return when["$from"][1] in ends.data
