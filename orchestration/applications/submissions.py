"""Post submissions: rows of the caller's transaction that the submission process turns into tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction

from .. import registry
from ..agents import payload_schemas
from ..cluster import crash_points
from ..database import clock, prepared
from ..decisions.fairness import PRIORITIES, check_key
from ..messaging import queues
from ..tracing import spans, switch, web
from . import tokens
from .task_handle import TaskHandle

# A database function, which gives each its turn: an application's role may call it, and has no rights on
# the engine's tables (`database_rights`).
POST = """
SELECT FROM orchestration_submit(%(workflow)s::text[], %(reference)s::text[], %(data)s::jsonb[],
    %(reply_to)s::text[], %(owner_application)s::text[], %(priority)s::smallint[], %(fairness_key)s::text[],
    %(about_workflow)s::text[], %(about_reference)s::text[])
"""
LONGEST_REFERENCE = 100  # characters


@dataclass(frozen=True, kw_only=True)
class Posting:
    """A task to submit.

    `reference` is your own id for it (at most 100 characters): one task per workflow and reference,
    however often it is posted. `reply_to` is the application that receives its status messages.
    A higher priority goes first. Within one, tasks of different fairness keys take turns; without a
    `fairness_key` it is the application's name. `about` is the task that it follows up, such as the order
    of a return.

    >>> Posting(workflow="greet", reference="42", data={"name": "Ada"}, reply_to="hotel").key
    'hotel'
    """

    workflow: str
    reference: str
    data: dict[str, Any]
    reply_to: str = ""
    priority: int = 0
    fairness_key: str = ""
    about: TaskHandle | None = None

    @property
    def key(self) -> str:
        """Its fairness key."""
        return self.fairness_key or self.reply_to


def submit_many(postings: Sequence[Posting]) -> list[TaskHandle]:
    """Post tasks, durably, in one statement, and ring once for the submission process; return their handles.

    Inside a transaction they are posted when that commits. Redis may be unavailable: a supervisor
    rings again. Raises, before anything is written: `NotRegistered` for an unknown workflow, also of
    `about`, or `reply_to`; `Unresolved` for data without all the fields that the workflow takes; `ValueError`
    for a reference, priority, fairness key or data that cannot be kept, or that no task can have, and for a
    task about itself.

    >>> names = {"42": "Ada", "43": "Grace"}
    >>> tasks = submit_many(
    ...     [Posting(workflow="greet", reference=id, data={"name": names[id]}) for id in names]
    ... )
    >>> run.go()
    >>> [task.progress().state.value for task in tasks]
    ['processed', 'processed']
    """
    began = clock.now() if switch.ON else 0.0
    data = [written(posting) for posting in postings]
    for reply_to in {posting.reply_to for posting in postings} - {"", *registry.receivers}:
        if not tokens.is_known(reply_to):
            registry.get(registry.receivers, "receiver of status messages", reply_to)
    prepared.run(
        POST,
        {
            "workflow": [posting.workflow for posting in postings],
            "reference": [posting.reference for posting in postings],
            "data": data,
            "reply_to": [posting.reply_to for posting in postings],
            "owner_application": [
                registry.workflows[posting.workflow].owner_application for posting in postings
            ],
            "priority": [posting.priority for posting in postings],
            "fairness_key": [posting.key for posting in postings],
            "about_workflow": [posting.about and posting.about.workflow for posting in postings],
            "about_reference": [posting.about and posting.about.reference for posting in postings],
        },
    )
    transaction.on_commit(partial(crash_points.reached, "web.after_commit_before_ring"))
    if switch.ON:
        named = [
            spans.Named(workflow=posting.workflow, reference=posting.reference)
            for posting in postings
        ]
        web.post(named, began)
    queues.ring_after_commit(queues.SUBMISSION)
    return [TaskHandle(posting.workflow, posting.reference) for posting in postings]


def written(posting: Posting) -> str:
    """Return a posting's data as JSON; raise what `submit_many` names."""
    workflow = registry.get(registry.workflows, "workflow", posting.workflow)
    _check_reference(posting.reference)
    if posting.about is not None:
        _check_about(posting, posting.about)
    if posting.priority not in PRIORITIES:
        raise ValueError(
            f"the priority {posting.priority!r} is not between {PRIORITIES[0]} and {PRIORITIES[-1]}"
        )
    check_key(posting.fairness_key)
    if not isinstance(posting.data, dict):
        raise payload_schemas.Invalid("the data is not a JSON object")
    workflow.require(posting.data)
    return payload_schemas.written(posting.data)


def _check_reference(reference: object) -> None:
    if not isinstance(reference, str):
        raise TypeError(f"the reference {reference!r} is not a text: write str({reference!r})")
    if not 0 < len(reference) <= LONGEST_REFERENCE or not reference.isprintable():
        raise ValueError(
            f"the reference {reference!r} has not 1 to {LONGEST_REFERENCE} printable characters"
        )


def _check_about(posting: Posting, about: object) -> None:
    """Raise what `submit_many` names for what no task can be about; that task need not exist."""
    if not isinstance(about, TaskHandle):
        raise TypeError(f"about is {about!r}: write TaskHandle(workflow, reference)")
    registry.get(registry.workflows, "workflow", about.workflow)
    _check_reference(about.reference)
    if about == TaskHandle(posting.workflow, posting.reference):
        raise ValueError(f"{about.workflow} {about.reference} cannot be about itself")
