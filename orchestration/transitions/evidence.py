"""Keep with failed attempts what shows why they failed."""

from collections.abc import Sequence

from ..database import sql
from ..messaging.messages import Evidence, Reply

WRITE = """
INSERT INTO orchestration_attemptevidence (step_id, number, traceback, status, answer, cut)
SELECT * FROM unnest(%(steps)s::bigint[], %(attempts)s::int[], %(tracebacks)s::text[],
    %(statuses)s::smallint[], %(answers)s::text[], %(cut)s::bool[])
"""


def write(replies: Sequence[Reply]) -> None:
    """Write the evidence of attempts that have just ended: no statement if there is none."""
    failed = [(reply, reply.evidence) for reply in replies if isinstance(reply.evidence, Evidence)]
    if not failed:
        return
    sql.run(
        WRITE,
        {
            "steps": [reply.step for reply, _ in failed],
            "attempts": [reply.attempt for reply, _ in failed],
            "tracebacks": [evidence.traceback for _, evidence in failed],
            "statuses": [evidence.status for _, evidence in failed],
            "answers": [evidence.answer for _, evidence in failed],
            "cut": [evidence.cut for _, evidence in failed],
        },
    )
