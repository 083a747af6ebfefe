"""Posting tasks: rows that the submission process makes tasks of, written with whatever else is so."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction

from . import applications, crashpoints, queues, registry, sql

# a statement, not models: making one of them takes most of the time, and this is done for each task
POST = """
INSERT INTO orchestration_submission (workflow, reference, data, reply_to, priority, reason)
SELECT p.*, ''
FROM unnest(
    %(workflow)s::text[], %(reference)s::text[], %(data)s::jsonb[], %(reply_to)s::text[],
    %(priority)s::integer[]
) AS p (workflow, reference, data, reply_to, priority)
ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, kw_only=True)
class Posting:
    """A task to be.

    `reference` is your own id for it (at most 100 characters): one task per workflow and reference,
    however often it is posted. `reply_to` is the application that is told what becomes of it.
    """

    workflow: str
    reference: str
    data: dict[str, Any]
    reply_to: str = ""
    priority: int = 0


def post(postings: Sequence[Posting]) -> None:
    """Post tasks, durably, in one statement, and ring once for the submission process.

    Inside a transaction they are posted when that commits. Redis need not be there: a supervisor
    rings again. Raises `LookupError` if nobody receives a `reply_to`.
    """
    for reply_to in {one.reply_to for one in postings} - {"", *registry.receivers}:
        if not applications.is_known(reply_to):
            registry.get(registry.receivers, "receiver of status messages", reply_to)
    sql.run(
        POST,
        {
            "workflow": [one.workflow for one in postings],
            "reference": [one.reference for one in postings],
            "data": sql.as_json([one.data for one in postings]),
            "reply_to": [one.reply_to for one in postings],
            "priority": [one.priority for one in postings],
        },
    )
    transaction.on_commit(partial(crashpoints.reached, "web.after_commit_before_ring"))
    transaction.on_commit(partial(queues.try_to_ring, queues.SUBMISSION))
