"""The shop's next release: other steps, a new message field, workflow or column, or a mistake.

DRILL_DEPLOY names the change, which is patched into the shop's modules.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db import models

from orchestration.api import Call, Posting, Step, Submitted, action, field, register, result
from orchestration.messaging.messages import Message as Travelling
from orchestration.registry import agents, workflows
from orders.agents.notification import Notification
from orders.lifecycle import emails, submission
from orders.lifecycle.message import EMAIL_WORKFLOW, WORKFLOW, Message
from orders.models import Order

NEW_FIELD, NEW_WORKFLOW, NEW_COLUMN = "wrapping", "write_to_customer", "wrapping"

old = workflows[WORKFLOW]
steps = {step.name: step for step in old.steps}

if os.environ.get("DRILL_DEPLOY") == "added":
    steps["thank"] = Step(
        name="thank",
        agent="notification",
        action="send",
        after=["send_confirmation"],
        request={
            "order": field("order"),
            "to": field("email"),
            "mail": field("confirmation"),
            "parcel": result("create_shipment", "tracking", default="none"),
        },
        irreversible="it is in the customer's inbox",
    )
elif os.environ.get("DRILL_DEPLOY") == "removed":
    del steps["send_confirmation"]
elif os.environ.get("DRILL_DEPLOY") == "reordered":
    steps["capture_payment"] = replace(steps["capture_payment"], after=["authorize_payment"])
    steps["create_shipment"] = replace(
        steps["create_shipment"], after=["reserve_stock", "capture_payment"]
    )
    steps["send_confirmation"] = replace(steps["send_confirmation"], after=["create_shipment"])

# in place of the shop's own: to register another of its name is a mistake
workflows[WORKFLOW] = replace(old, steps=list(steps.values()))


def new_field() -> None:
    """Add a wrapping to orders; the previous release refuses this field."""
    as_json, read = Message.as_json, submission.read

    def with_field(message: Message) -> dict[str, Any]:
        return {**as_json(message), NEW_FIELD: "plain"}

    def without_field(data: Mapping[str, Any]) -> Message:
        return read({name: part for name, part in data.items() if name != NEW_FIELD})

    Message.as_json = with_field  # type: ignore[method-assign]
    submission.read = without_field


def new_workflow() -> None:
    """Send the first e-mail by a workflow that the previous release does not know."""
    received = emails.received
    register(replace(workflows[EMAIL_WORKFLOW], name=NEW_WORKFLOW))

    def by_new_workflow(message: Message) -> Posting:
        return replace(received(message), workflow=NEW_WORKFLOW)

    emails.received = by_new_workflow


def new_column() -> None:
    """Write a column of orders that the previous release omits."""
    models.TextField(default="plain").contribute_to_class(Order, NEW_COLUMN)


def broken() -> None:
    """Fail to record any order."""

    def record(_submitted: Sequence[Submitted]) -> None:
        raise TypeError("record() got an unexpected keyword argument 'wrapping'")

    workflows[WORKFLOW] = replace(old, record=record)


def new_action() -> None:
    """Send the confirmation by a new action, with a new field in messages."""
    dump = Travelling.dump

    class Mailer(Notification):
        @action
        async def confirm(self, call: Call) -> dict[str, Any]:
            return await self.send(replace(call, action="send"))

    def with_field(message: Travelling) -> bytes:
        return json.dumps({**json.loads(dump(message)), NEW_FIELD: "plain"}).encode()

    Travelling.dump = with_field  # type: ignore[method-assign]
    agents[Mailer.name] = Mailer
    confirmed = replace(steps["send_confirmation"], action="confirm")
    changed = steps | {"send_confirmation": confirmed}
    workflows[WORKFLOW] = replace(old, steps=[*changed.values()])


changes = {
    "action": new_action,
    "field": new_field,
    "workflow": new_workflow,
    "column": new_column,
    "broken": broken,
}
if change := changes.get(os.environ.get("DRILL_DEPLOY", "")):
    change()
