"""Tasks that follow up an order, as its refunds and returns do: each is about the order's task."""

from typing import Any
from uuid import UUID

from orchestration import api

from .message import WORKFLOW


def post(
    order: UUID, workflow: str, reference: UUID, data: dict[str, Any], *, reply_to: str = ""
) -> None:
    """Post a task about an order, in the transaction that notes it."""
    task = api.Posting(
        workflow=workflow,
        reference=str(reference),
        data=data,
        reply_to=reply_to,
        about=api.TaskHandle(WORKFLOW, str(order)),
    )
    api.submit_many([task])
