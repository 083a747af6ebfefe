"""Whether steps ended as their children did, and were undone with them."""

from collections.abc import Iterator

from orchestration.database import sql

# Each child with its step, the undo of that, and its item. Of one that was replaced, its successor counts.
CHILDREN = """
SELECT c.reference, c.state, s.name, s.process_state, s.done_by <> '', u.process_state,
    nullif(s.result->'items'->c.position, 'null') IS NULL, EXISTS (SELECT FROM orchestration_task o
        WHERE o.parent_id = s.id AND o.position = c.position AND o.id <> c.id AND o.created_at > c.created_at)
FROM orchestration_task c JOIN orchestration_step s ON s.id = c.parent_id
LEFT JOIN orchestration_step u ON u.task_id = s.task_id AND u.name = s.name AND u.direction = 'undo'
"""
ORPHANS = """
SELECT c.reference FROM orchestration_task c
WHERE c.parent_id IS NOT NULL AND NOT EXISTS (SELECT FROM orchestration_step s WHERE s.id = c.parent_id)
"""
TWINS = """
SELECT min(c.reference) FROM orchestration_task c WHERE c.parent_id IS NOT NULL AND c.undo_at IS NULL
GROUP BY c.parent_id, c.position HAVING count(*) > 1
"""


def problems() -> Iterator[str]:
    """Yield the children that do not fit the step whose they are."""
    for (reference,) in sql.run(ORPHANS, {}):
        yield f"a child without its step: {reference}"
    for (reference,) in sql.run(TWINS, {}):
        yield f"two children for an item: {reference}"
    for reference, state, name, step, by_hand, undo, lacks, replaced in sql.run(CHILDREN, {}):
        if undo == "processed" and state != "undone":
            yield f"{name} is undone, and its child is {state}: {reference}"
        if step == "processed" and not by_hand and not replaced:
            if lacks and state != "undone":
                yield f"{name} has ended without its child, which is {state}: {reference}"
            if not lacks and state not in {"processed", "undone"}:
                yield f"{name} has the result of a child that is {state}: {reference}"
