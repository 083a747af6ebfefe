"""What workflows load for requests is kept with their steps: a repeat under one key has one content.

No step moves by this. It is forgotten when the step has ended: what was loaded may be personal.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from .. import sql
from ..messages import Request

KEPT = """
SELECT id, loaded->'values' FROM orchestration_step
WHERE id = ANY(%(ids)s) AND (loaded->>'generation')::int = generation
"""

KEEP = """
UPDATE orchestration_step s
SET loaded = jsonb_build_object('generation', s.generation, 'values', l.values)
FROM unnest(%(ids)s::bigint[], %(attempts)s::int[], %(values)s::jsonb[]) AS l (id, attempt, values)
WHERE s.id = l.id AND s.attempt = l.attempt AND s.locked_by IS NOT NULL
RETURNING s.id
"""


def kept(requests: Sequence[Request]) -> dict[int, list[Any]]:
    """Return what was loaded for earlier attempts under the same keys, by step."""
    again = [request.step for request in requests if request.attempt > 1]
    rows = sql.run(KEPT, {"ids": again}) if again else []
    return {step: json.loads(values) for step, values in rows}


@transaction.atomic
def keep(requests: Sequence[Request], values: Mapping[int, Sequence[Any]]) -> set[int]:
    """Keep what was loaded for requests; return their steps, but for those given up meanwhile.

    Waits for a lock but shortly.
    """
    if not requests:
        return set()
    about = {
        "ids": [request.step for request in requests],
        "attempts": [request.attempt for request in requests],
        "values": sql.as_json([values[request.step] for request in requests]),
    }
    return {step for (step,) in sql.run(sql.BRIEFLY + KEEP, about)}
